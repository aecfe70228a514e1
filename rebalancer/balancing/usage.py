"""What nodes and pods use, as requested or as measured, for rules that do not care which.

Source of the rules: the descheduler's LowNodeUtilization and HighNodeUtilization.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, METRIC_RESOURCE, PODS, Resources, arriving
from rebalancer.errors import StrategyError
from rebalancer.eviction.evict import Evict
from rebalancer.policy.usage import UtilizationArgs


@dataclass(frozen=True, slots=True)
class Usage:
    """What nodes and pods use of the tracked resources, from any source."""

    # By name of the node; the same resources for each.  A node that is missing is left out of everything.
    nodes: Mapping[str, Resources]
    # What one pod uses, or None if that is not known; the attribute is None if the source knows nothing of single pods.
    of_pod: Callable[[Pod], Resources | None] | None = None
    peaks: Mapping[str, Resources] | None = None  # like `nodes`, what they may use at times; None if that is the same

    def sources(self, cluster: Cluster) -> list[NodeUtilization]:
        """Return the nodes whose usage is known, by name; it falls as pods leave the cluster, in the present scope."""
        nodes = _utilizations(cluster, self.nodes)
        if self.of_pod is not None:
            cluster.follow(FollowedUsage(nodes, self.of_pod))
        return nodes

    def destinations(self, cluster: Cluster) -> list[NodeUtilization]:
        """Return the same nodes as they are at their peaks."""
        return _utilizations(cluster, self.nodes if self.peaks is None else self.peaks)


class FollowedUsage:
    """Lowers what nodes use as pods leave the cluster, and raises it where they are expected; or does one of both."""

    def __init__(
        self,
        nodes: Iterable[NodeUtilization],
        of_pod: Callable[[Pod], Resources | None],
        *,
        falls: bool = True,
        rises: bool = False,
    ) -> None:
        self._nodes = {each.node.name: each for each in nodes}
        self._of_pod = of_pod
        self._falls, self._rises = falls, rises

    def left(self, pod: Pod, sign: int) -> None:
        """Count the usage of a pod that went, or is back."""
        node = self._nodes.get(pod.node)
        if self._falls and node is not None and pod.active:
            node.charge(self._of_pod(pod) or {}, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count the usage of a pod that is expected on a node, or is not any more."""
        if self._rises and node.name in self._nodes:
            self._nodes[node.name].charge(arriving(self._of_pod(pod) or {}), sign)


def usage_for(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Usage:
    """Return what nodes and pods use: measured if the arguments say so, else requested; may raise StrategyError."""
    if args.metrics_utilization is None:
        return requested(cluster, args.thresholds)
    return measured(cluster, figures_for(args, cluster, evict), args.thresholds)


def figures_for(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Measured:
    """Return the figures of the source that the arguments name; its warnings go into the report."""
    figures = cluster.measure(args.metrics_utilization)
    for text in figures.warnings:
        evict.warn(text)
    return figures


def requested(cluster: Cluster, names: Iterable[str]) -> Usage:
    """Return the usage as active pods request it: cpu, memory, the number of pods, and the resources named."""
    tracked = tuple(dict.fromkeys((CPU, MEMORY, PODS, *sorted(names))))
    used = {node.name: cluster.used(node) for node in cluster.nodes}
    nodes = {node: {name: amounts.get(name, 0) for name in tracked} for node, amounts in used.items()}
    return Usage(nodes, lambda pod: {**pod.spec.requests, PODS: 1})


def measured(cluster: Cluster, figures: Measured, names: Iterable[str]) -> Usage:
    """Return the usage as it was measured, with the number of active pods as it is."""
    check_measured(figures, names)
    known = frozenset(next(iter(figures.nodes.values()), {}))
    counts = {node.name: {PODS: cluster.used(node).get(PODS, 0)} for node in cluster.nodes}
    counted = known != {METRIC_RESOURCE}

    def whole(amounts: Mapping[str, Resources]) -> dict[str, Resources]:
        return {name: {**each, **counts[name]} if counted else each for name, each in amounts.items()}

    def of_pod(pod: Pod) -> Resources | None:
        amounts = (figures.pods or {}).get(pod.key, {})
        return {**amounts, PODS: 1} if known <= amounts.keys() else None

    return Usage(whole(figures.nodes), None if figures.pods is None else of_pod, whole(figures.peaks))


def check_measured(figures: Measured, names: Iterable[str]) -> None:
    """Check that a source measures the resources named; where no node was measured there is nothing to check."""
    known = next(iter(figures.nodes.values()), {})
    if unknown := [name for name in sorted(names) if figures.nodes and name not in {*known, PODS}]:
        raise StrategyError(f"thresholds name {', '.join(unknown)}, which this source does not measure")


def _utilizations(cluster: Cluster, amounts: Mapping[str, Resources]) -> list[NodeUtilization]:
    return [NodeUtilization(node, amounts[node.name]) for node in cluster.nodes if node.name in amounts]
