"""All that is found out about a cluster: recommendations, and what they would change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.recommendation.neighbours import Neighbours
from rebalancer.recommendation.samples import Columns
from rebalancer.recommendation.what_if import WhatIf
from rebalancer.recommendation.workloads import History, Recommendation, Workload


@dataclass(frozen=True, slots=True)
class Recommendations:
    """All that is found out about a cluster.

    Attributes:
        recommendations: for each container, in the order of namespaces and names.
        what_if: what they would change; None if nobody asked.
        neighbours: heavy workloads that share nodes.
        qos: by workload, the quality of service of its pods today and with what is recommended.
    """

    recommendations: Sequence[Recommendation]
    what_if: WhatIf | None = None
    neighbours: Sequence[Neighbours] = ()
    qos: Mapping[Workload, tuple[str, str]] = field(default_factory=dict)


def pod_usage(
    histories: Iterable[History], pods: Mapping[tuple[str, str], Workload]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return what each pod uses in the peak windows, as a mean; by namespace and name, then by resource.

    A pod that has not been measured is taken to use what the others of its workload do.

    Args:
        histories: of all containers that were measured.
        pods: the pods of the cluster, and whose they are.
    """
    own: dict[tuple[str, str], dict[str, float]] = {}
    usual: dict[Workload, dict[str, float]] = {}
    for each in histories:
        by_pod: dict[str, list[Columns]] = {}
        for name, _, found in each.samples.steady().in_windows():
            by_pod.setdefault(name, []).append(found)
        for name, parts in by_pod.items():
            _add_means(own.setdefault((each.workload.namespace, name), {}), parts)
        if by_pod:
            _add_means(usual.setdefault(each.workload, {}), [part for parts in by_pod.values() for part in parts])
    used = {pod: own.get(pod) or usual.get(workload) for pod, workload in pods.items()}
    return {pod: amounts for pod, amounts in used.items() if amounts}


def _add_means(into: dict[str, float], parts: Sequence[Columns]) -> None:
    count = sum(len(each.times) for each in parts)
    into[CPU] = into.get(CPU, 0.0) + 1000 * sum(sum(each.cpu) for each in parts) / count
    into[MEMORY] = into.get(MEMORY, 0.0) + sum(sum(each.memory) for each in parts) / count
