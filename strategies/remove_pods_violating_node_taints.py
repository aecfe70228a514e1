"""RemovePodsViolatingNodeTaints: evict pods that do not tolerate a taint of the node they are on.

Counted are taints with effect NoSchedule, with includePreferNoSchedule also PreferNoSchedule; never NoExecute, which
Kubernetes itself acts on.  An entry of excludedTaints or includedTaints is a key (any value) or key=value.  Without
includedTaints all taints count; an empty list counts none, so it switches the strategy off.

Cordoned nodes and nodes under pressure carry NoSchedule taints of Kubernetes' own, which count like any other:
exclude their keys to leave such nodes alone.
"""

from collections.abc import Mapping
from typing import ClassVar

from rebalancer import api


class RemovePodsViolatingNodeTaintsArgs(api.PodArgs):
    """Which taints count."""

    include_prefer_no_schedule: bool = api.Field(False, description="Count PreferNoSchedule taints too.")
    excluded_taints: api.Names = api.Field((), description="Taints that do not count: key or key=value.")
    included_taints: api.Names | None = api.Field(None, description="Only these taints count: key or key=value.")

    @api.model_validator(mode="after")
    def _one_side(self) -> "RemovePodsViolatingNodeTaintsArgs":
        if self.excluded_taints and self.included_taints:
            raise ValueError("give either includedTaints or excludedTaints, not both")
        return self


class RemovePodsViolatingNodeTaints(api.Deschedule[RemovePodsViolatingNodeTaintsArgs]):
    """Evict pods that do not tolerate their node's taints."""

    name = "RemovePodsViolatingNodeTaints"
    Args = RemovePodsViolatingNodeTaintsArgs
    example: ClassVar[Mapping[str, object]] = {"excludedTaints": ["node.kubernetes.io/unschedulable"]}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the pods that match, node by node, the oldest first."""
        for node in cluster.nodes:
            pods = [pod for pod in cluster.active_pods_on(node) if self.args.selects(pod)]
            found = [
                (pod, api.Cause(api.Code.TAINT_NOT_TOLERATED, {"taint": str(taint), "node": node.name}))
                for pod in pods
                if (taint := api.untolerated(pod.spec.tolerations, node.taints, self._counts))
            ]
            evict.count({"pods": len(pods), "intolerant": len(found)})
            evict.each([each for each in found if evict.evictable(*each)])

    def _counts(self, taint: api.Taint) -> bool:
        args = self.args
        return (
            (taint.effect == "NoSchedule" or (taint.effect == "PreferNoSchedule" and args.include_prefer_no_schedule))
            and not _named(taint, args.excluded_taints)
            and (args.included_taints is None or _named(taint, args.included_taints))
        )


def _named(taint: api.Taint, entries: tuple[str, ...]) -> bool:
    return taint.key in entries or (taint.value != "" and f"{taint.key}={taint.value}" in entries)
