"""RemovePodsViolatingNodeAffinity: evict pods from nodes that their node affinity speaks against by now.

Labels of nodes change, and pods stay where they are.  nodeAffinityType lists what to look at, in this order:

- requiredDuringSchedulingIgnoredDuringExecution: pods whose node does not match their required node affinity (together
  with their nodeSelector; a nodeSelector alone is not enough), while some node takes them;
- preferredDuringSchedulingIgnoredDuringExecution: pods for which another node has a greater sum of preferred weights
  than their own.  That node may be full or tainted; it is enough that some node takes the pod, its own included.  With
  the evictor's nodeFit some other node must.

Other words are skipped with a warning.  No room is set aside: of three pods and room for one, all three go.
The oldest pods of each node go first.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from rebalancer import api

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class RemovePodsViolatingNodeAffinityArgs(api.PodArgs):
    """Which kinds of node affinity to look at."""

    node_affinity_type: api.Names = api.Field(
        (), validate_default=True, description=f"{REQUIRED}, {PREFERRED} or both."
    )

    @api.field_validator("node_affinity_type")
    @classmethod
    def _given(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        if not types:
            raise ValueError(f"nodeAffinityType must be given: {REQUIRED}, {PREFERRED} or both")
        return types


class RemovePodsViolatingNodeAffinity(api.Deschedule[RemovePodsViolatingNodeAffinityArgs]):
    """Evict pods that belong on other nodes."""

    name = "RemovePodsViolatingNodeAffinity"
    Args = RemovePodsViolatingNodeAffinityArgs
    example: ClassVar[Mapping[str, object]] = {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the pods that match, type by type and node by node, the oldest first."""
        eligible = cluster.index(api.EligibleNodes)
        others = eligible.among(cluster.nodes)
        pods = sum(self.args.selects(pod) for node in cluster.nodes for pod in cluster.active_pods_on(node))
        evict.count({"pods": pods, "misplaced": 0})
        for kind in self.args.node_affinity_type:
            if kind == REQUIRED:
                self._evict(cluster, evict, partial(_requires_another, others))
            elif kind == PREFERRED:
                self._evict(cluster, evict, partial(_prefers_another, eligible, others, api.Preferences(cluster.nodes)))
            else:
                evict.warn(f"nodeAffinityType {kind!r} is unknown and skipped; there are {REQUIRED} and {PREFERRED}")

    def _evict(
        self, cluster: api.Cluster, evict: api.Evict, why: Callable[[api.Pod, api.Node], api.Cause | None]
    ) -> None:
        for node in cluster.nodes:
            found = [
                (pod, because)
                for pod in cluster.active_pods_on(node)
                if self.args.selects(pod) and (because := why(pod, node))
            ]
            evict.count({"misplaced": len(found)})
            for pod, because in [each for each in found if evict.evictable(*each)]:
                evict(pod, because)


def _requires_another(others: api.OtherNodes, pod: api.Pod, node: api.Node) -> api.Cause | None:
    missing = api.unmet(pod.spec, node) if pod.spec.node_terms is not None else ""
    better = missing and others.first_for(pod)
    if not better:
        return None
    return api.Cause(api.Code.NODE_AFFINITY_VIOLATED, {"required": missing, "node": node.name, "better": better})


def _prefers_another(
    eligible: api.EligibleNodes, others: api.OtherNodes, preferences: api.Preferences, pod: api.Pod, node: api.Node
) -> api.Cause | None:
    weight = preferences.weight(pod.spec, node)
    best, other = preferences.best(pod.spec)
    if best <= weight or not (eligible.fits(pod, node) or others.any_for(pod)):
        return None
    details = {"node": node.name, "weight": weight, "better": other.name, "better_weight": best}
    return api.Cause(api.Code.PREFERRED_ELSEWHERE, details)
