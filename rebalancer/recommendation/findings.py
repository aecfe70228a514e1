"""All that is found out about a cluster: recommendations, and what they would change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rebalancer.cluster.resources import CPU, MEMORY
from rebalancer.recommendation.neighbours import Neighbours
from rebalancer.recommendation.rules import Sample
from rebalancer.recommendation.what_if import WhatIf
from rebalancer.recommendation.workloads import History, Recommendation, Workload


@dataclass(frozen=True, slots=True)
class Findings:
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
        by_pod: dict[str, list[Sample]] = {}
        for sample in each.samples:
            if sample.day is not None and not sample.starting:
                by_pod.setdefault(sample.pod, []).append(sample)
        for name, found in by_pod.items():
            _add_means(own.setdefault((each.workload.namespace, name), {}), found)
        if by_pod:
            _add_means(usual.setdefault(each.workload, {}), [one for found in by_pod.values() for one in found])
    used = {pod: own.get(pod) or usual.get(workload) for pod, workload in pods.items()}
    return {pod: amounts for pod, amounts in used.items() if amounts}


def _add_means(into: dict[str, float], samples: Sequence[Sample]) -> None:
    into[CPU] = into.get(CPU, 0.0) + fmean(each.cpu for each in samples)
    into[MEMORY] = into.get(MEMORY, 0.0) + fmean(each.memory for each in samples)
