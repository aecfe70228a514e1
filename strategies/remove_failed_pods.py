"""RemoveFailedPods: evict pods in phase Failed, so that their owners can make new ones.

Pods younger than minPodLifetimeSeconds (an hour unless given) are left for people to look at.  With `reasons`, one of
them must be the pod's status reason or the current waiting or terminated reason of a container; with `exitCodes`, a
container must have ended with one of them.  The oldest pods of each node go first.

Failed pods without an owner need the protection FailedBarePods disabled.
"""

from collections.abc import Mapping
from typing import ClassVar

from rebalancer import api


class RemoveFailedPodsArgs(api.PodArgs):
    """Which failed pods to evict."""

    exclude_owner_kinds: api.Names = api.Field((), description="No pods with an owner of one of these kinds.")
    min_pod_lifetime_seconds: api.Count = api.Field(3600, description="Younger pods stay.")
    reasons: api.Names = api.Field((), description="One of these reasons must be given somewhere.")
    exit_codes: tuple[api.Int, ...] = api.Field((), strict=False, description="A container ended with one of these.")
    including_init_containers: bool = api.Field(False, description="Look at init containers too.")


class RemoveFailedPods(api.Deschedule[RemoveFailedPodsArgs]):
    """Evict failed pods."""

    name = "RemoveFailedPods"
    Args = RemoveFailedPodsArgs
    example: ClassVar[Mapping[str, object]] = {"minPodLifetimeSeconds": 3600, "excludeOwnerKinds": ["Job"]}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the failed pods that match, node by node, the oldest first."""
        for node in cluster.nodes:
            failed = [pod for pod in cluster.pods_on(node) if pod.phase == "Failed" and self.args.selects(pod)]
            found = [(pod, because) for pod in failed if (because := self._why(pod, cluster))]
            evict.count({"failed": len(failed), "matching": len(found)})
            evict.each([each for each in found if evict.evictable(*each)])

    def _why(self, pod: api.Pod, cluster: api.Cluster) -> api.Cause | None:
        """Return what the pod matches; None if some criterion does not hold."""
        args = self.args
        statuses = pod.statuses(init=args.including_init_containers)
        reasons = {pod.reason, *(each.waiting for each in statuses), *(each.terminated for each in statuses)} - {""}
        age = int(pod.age(cluster.now).total_seconds())
        matches = (
            age >= args.min_pod_lifetime_seconds
            and {owner.kind for owner in pod.owners}.isdisjoint(args.exclude_owner_kinds)
            and (not args.reasons or not reasons.isdisjoint(args.reasons))
            and (not args.exit_codes or not {each.exit_code for each in statuses}.isdisjoint(args.exit_codes))
        )
        details = {"reasons": sorted(reasons), "age_seconds": age, "minimum_seconds": args.min_pod_lifetime_seconds}
        return api.Cause(api.Code.FAILED, details) if matches else None
