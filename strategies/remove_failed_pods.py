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
            found = [(pod, self._because(pod, cluster)) for pod in failed if self._matches(pod, cluster)]
            evict.count({"failed": len(failed), "matching": len(found)})
            evict.each([each for each in found if evict.evictable(*each)])

    def _matches(self, pod: api.Pod, cluster: api.Cluster) -> bool:
        args = self.args
        codes = {status.exit_code for status in pod.statuses(init=args.including_init_containers)}
        return (
            int(pod.age(cluster.now).total_seconds()) >= args.min_pod_lifetime_seconds
            and {owner.kind for owner in pod.owners}.isdisjoint(args.exclude_owner_kinds)
            and (not args.reasons or not self._reasons(pod).isdisjoint(args.reasons))
            and (not args.exit_codes or not codes.isdisjoint(args.exit_codes))
        )

    def _reasons(self, pod: api.Pod) -> set[str]:
        statuses = pod.statuses(init=self.args.including_init_containers)
        return {pod.reason, *(each.waiting for each in statuses), *(each.terminated for each in statuses)} - {""}

    def _because(self, pod: api.Pod, cluster: api.Cluster) -> api.Cause:
        age = int(pod.age(cluster.now).total_seconds())
        ages = {"age_seconds": age, "minimum_seconds": self.args.min_pod_lifetime_seconds}
        return api.Cause(api.Code.FAILED, {"reasons": sorted(self._reasons(pod)), **ages})
