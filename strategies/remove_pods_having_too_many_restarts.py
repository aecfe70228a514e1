"""RemovePodsHavingTooManyRestarts: evict pods whose containers have restarted too often.

The restarts of all containers are added up; with includingInitContainers those of init containers (sidecars among
them) too.  With `states`, the pod must be in that phase or a container must wait for that reason.  On each node the
pods with the most restarts go first.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from rebalancer import api


class RemovePodsHavingTooManyRestartsArgs(api.PodArgs):
    """How many restarts are too many."""

    pod_restart_threshold: api.Int = api.Field(ge=1, description="Pods with so many restarts go; must be given.")
    including_init_containers: bool = api.Field(False, description="Count init containers too.")
    states: tuple[Literal["Running", "CrashLoopBackOff"], ...] = api.Field(
        (), strict=False, description="Running or CrashLoopBackOff; one of them must apply."
    )


class RemovePodsHavingTooManyRestarts(api.Deschedule[RemovePodsHavingTooManyRestartsArgs]):
    """Evict pods that restart too often."""

    name = "RemovePodsHavingTooManyRestarts"
    Args = RemovePodsHavingTooManyRestartsArgs
    example: ClassVar[Mapping[str, object]] = {"podRestartThreshold": 100, "includingInitContainers": True}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the pods that match, node by node, the most restarts first."""
        threshold = self.args.pod_restart_threshold
        for node in cluster.nodes:
            pods = [pod for pod in cluster.pods_on(node) if self.args.selects(pod)]
            restarts = {pod: self._restarts(pod) for pod in pods}
            found = [pod for pod in pods if restarts[pod] >= threshold and self._in_state(pod)]
            evict.count({"pods": len(pods), "restarted": len(found)}, restarts=threshold)
            found.sort(key=lambda pod: (-restarts[pod], pod.age_order))
            listed = [
                (pod, api.Cause(api.Code.TOO_MANY_RESTARTS, {"restarts": restarts[pod], "threshold": threshold}))
                for pod in found
            ]
            evict.each([each for each in listed if evict.evictable(*each)])

    def _restarts(self, pod: api.Pod) -> int:
        return sum(status.restarts for status in pod.statuses(init=self.args.including_init_containers))

    def _in_state(self, pod: api.Pod) -> bool:
        statuses = pod.statuses(init=self.args.including_init_containers)
        present = {pod.phase, *(status.waiting for status in statuses)}
        return not self.args.states or not present.isdisjoint(self.args.states)
