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
from rebalancer.memory.document import owner_key
from rebalancer.policy.moving import Trust

_YES = "true"

#: Returns the name of the Deployment whose rollout is to be restarted; empty if the pod is evicted.
Restarted = Callable[[Pod], str]


def restarting(settings: Trust | None, cluster: Cluster) -> Restarted:
    """Return what says of a pod whether it goes by a rollout; without settings none does."""
    wanted = settings.restart if settings else False
    scheduler_inputs = cluster.snapshot.scheduler_inputs

    def restarted(pod: Pod) -> str:
        owner = pod.controller
        if not wanted or owner is None or owner.kind != "ReplicaSet":
            return ""
        if not pod.active or not pod.ready or pod.terminating or pod.claims or pod.own_claims:
            return ""
        key = owner_key(pod)
        if key not in scheduler_inputs.surging:
            return ""
        said = notes.restart if (notes := scheduler_inputs.notes.get(key)) else ""
        agreed = said.lower() == _YES if wanted == "annotated" else said.lower() in ("", _YES)
        return key[1].removeprefix("Deployment/") if agreed else ""

    return restarted
