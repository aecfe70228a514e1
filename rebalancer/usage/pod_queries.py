"""The answers of queries about pods, which may include pods that were deleted within the window."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.resources import Resources
from rebalancer.errors import SourceError
from rebalancer.policy.usage import PodQuery, PrometheusUsage
from rebalancer.usage.amounts import amount
from rebalancer.usage.node_names import NodeNames
from rebalancer.usage.promql import Ask, Sample
from rebalancer.usage.window import Window

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PodFigures:
    """The usage of pods, and their nodes where these are known, by (namespace, name).

    `usage` is None if the policy has no queries about pods.
    """

    usage: Mapping[Key, Resources] | None
    nodes: Mapping[Key, str]


def pod_figures(ask: Ask, wanted: PrometheusUsage, cluster: Cluster) -> PodFigures:
    """Return the usage of pods: at the source quantile, or without a window the present value.

    Raises:
        SourceError: there is no answer, or one that cannot be used, like two series for one pod.
    """
    if not wanted.pods:
        return PodFigures(None, {})
    window = Window.of(wanted)
    usage: dict[Key, dict[str, int]] = {}
    nodes: dict[Key, str] = {}
    for resource, query in wanted.pods.items():
        text = query.query if window is None else window.quantile(query.query, wanted.source_quantile)
        for key, (sample, node) in _PodNames(query, cluster).pick(ask(text), text).items():
            used = amount(sample.value, resource, query, cluster.node(node or ""))
            if used is None:
                continue
            usage.setdefault(key, {})[resource] = used
            if node and query.node is not None:
                nodes[key] = node
    return PodFigures(usage, nodes)


class _PodNames:
    """Finds pods, and their nodes, by the labels of a query's series."""

    def __init__(self, query: PodQuery, cluster: Cluster) -> None:
        self._labels = query.labels
        self._names = NodeNames(cluster.snapshot.nodes, query.node) if query.node else None
        self._present = {pod.key: pod.node for pod in cluster.snapshot.pods}

    def pick(self, samples: Iterable[Sample], query: str) -> Mapping[Key, tuple[Sample, str | None]]:
        """Return the series of each pod, with its node.

        A StatefulSet's pod that has moved may have series on two nodes: the one on the pod's present node counts.
        """
        found: dict[Key, tuple[Sample, str | None]] = {}
        for sample in samples:
            key = (sample.metric.get(self._labels.namespace, ""), sample.metric.get(self._labels.pod, ""))
            if not all(key):
                continue  # cgroups that belong to no pod
            node = self._names.of(sample) if self._names else self._present.get(key)
            if key not in found:
                found[key] = (sample, node)
            elif self._names is None or node == found[key][1]:
                raise self._twice(query, key, found[key][0], sample)
            elif node == self._present.get(key):
                found[key] = (sample, node)
        return found

    def _twice(self, query: str, key: Key, first: Sample, second: Sample) -> SourceError:
        by = f"{self._labels.namespace}, {self._labels.pod}"
        return SourceError(
            f"the query `{query.strip()}` gives two series for pod {'/'.join(key)}: {first} and {second}; "
            f"aggregate them, for example with sum by ({by}) (...)"
        )
