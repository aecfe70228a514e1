"""Single replicas that are moved by a rollout (`trust.restart`): a second pod is Ready before the first one goes.

An eviction takes the only pod of a Deployment away before its replacement runs.  A rollout does not, where the
Deployment has maxSurge of at least 1 and maxUnavailable 0.  So `minReplicas` and PDBs do not hold such a pod: both keep
a number of pods running, and that number never falls.  All other protections do.

A pod is evicted as usual, if it may be, where it is not Ready, or where it names a PersistentVolumeClaim: one that only
one node may use would keep the second pod from starting.
"""

from collections.abc import Callable

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.engine.gate import Recheck, Sink
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.verdict import Granted, Verdict
from rebalancer.memory.document import owner_key
from rebalancer.policy.trust import Trust

_YES, _NO = "true", "false"


class Restarts:
    """Which pods go by a rollout.

    Args:
        settings: the policy's; None restarts nothing.
        cluster: the cluster.
    """

    def __init__(self, settings: Trust | None, cluster: Cluster) -> None:
        self._wanted = settings.restart if settings else False
        scheduler_inputs = cluster.snapshot.scheduler_inputs
        self._surging, self._notes = scheduler_inputs.surging, scheduler_inputs.notes

    def of(self, pod: Pod) -> str:
        """Return the name of the Deployment whose rollout is to be restarted; empty if the pod is evicted."""
        owner = pod.controller
        if not self._wanted or owner is None or owner.kind != "ReplicaSet":
            return ""
        if not pod.active or not pod.ready or pod.terminating or pod.claims or pod.own_claims:
            return ""
        key = owner_key(pod)
        if key not in self._surging:
            return ""
        said = notes.restart if (notes := self._notes.get(key)) else ""
        agreed = said.lower() == _YES if self._wanted == "annotated" else said.lower() in ("", _YES)
        return key[1].removeprefix("Deployment/") if agreed else ""


class RestartingSink:
    """Restarts rollouts, and leaves all other pods to another sink (a `rebalancer.engine.gate.Sink`).

    Args:
        sink: evicts.
        restarts: says which pods go by a rollout.
        restart: restarts the rollout of a pod's Deployment, given its name and what keeps a pod that has changed; a dry
            run only grants it.
    """

    def __init__(self, sink: Sink, restarts: Restarts, restart: Callable[[Pod, str, Recheck], Verdict]) -> None:
        self._sink = sink
        self._restarts = restarts
        self._restart = restart

    def evict(self, pod: Pod, profile: str, strategy: str, because: Cause, recheck: Recheck) -> Verdict:
        """Make a pod go.

        Raises:
            CycleStopped: as the sink.
        """
        if name := self._restarts.of(pod):
            return self._restart(pod, name, recheck)
        return self._sink.evict(pod, profile, strategy, because, recheck)


def granted(_pod: Pod, name: str, _recheck: Recheck) -> Verdict:
    """Grant a restart, and do nothing."""
    return Granted(restarted=name)
