"""RemovePodsViolatingInterPodAntiAffinity: evict pods from topology domains of pods they want to be apart from.

A pod violates its own required anti-affinity if another pod that one of its terms selects runs on the same node, or on
a node with the same value of the term's topologyKey.  The pod that declares the term goes, never the one it dislikes,
unless that one declares a matching term too.  Preferred terms do not count.

Node by node the cheapest pods go first: no priority before any, low before high.  What went is no longer in the way of
the pods after it, so of three pods that dislike each other two go.

With `selection: fewest` the pod that is in the way may go as well: the fewest pods go whose going ends all conflicts,
and of equally few the cheapest, by priority, QoS and age.  Where one pod is in the way of several, that one goes.  A
protected pod stays, so that its neighbours have to go; what a limit or a PDB refuses stays too, and others go instead.
A pod that breaks no term of its own goes only if some other node takes it and no pod there wants to be apart from it.
Pods that are terminating are in nobody's way.

Only pods that `namespaces` and `labelSelector` let through are looked at, on both sides: narrowing them hides
conflicts.  Terms are read as the scheduler reads them, with namespaceSelector, matchLabelKeys and mismatchLabelKeys.
"""

from typing import Literal

from rebalancer import api


class RemovePodsViolatingInterPodAntiAffinityArgs(api.PodArgs):
    """Which pods to look at, and which of them go."""

    selection: Literal["fewest"] | None = api.Field(
        None, description="fewest: as few pods as end all conflicts; absent: the descheduler's rule."
    )


class RemovePodsViolatingInterPodAntiAffinity(api.Deschedule[RemovePodsViolatingInterPodAntiAffinityArgs]):
    """Evict pods that break their own anti-affinity."""

    name = "RemovePodsViolatingInterPodAntiAffinity"
    Args = RemovePodsViolatingInterPodAntiAffinityArgs
    needs = frozenset({"Namespace"})

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the pods that match, node by node, the cheapest first."""
        pods = [
            pod
            for node in cluster.nodes
            for pod in api.cheapest_first([each for each in cluster.active_pods_on(node) if self.args.selects(each)])
        ]
        conflicts = api.AntiAffinityIndex(cluster, pods)
        evict.count({"pods": len(pods), "conflicting": 0})
        if self.args.selection == "fewest":
            _evict_fewest(pods, conflicts, evict)
        else:
            _evict_declarers(pods, conflicts, evict)


def _evict_declarers(pods: list[api.Pod], conflicts: api.AntiAffinityIndex, evict: api.Evict) -> None:
    for pod in pods:
        because = conflicts.conflict(pod)
        if not because:
            continue
        evict.count({"conflicting": 1})
        if evict.evictable(pod, because):
            evict(pod, because)


def _evict_fewest(pods: list[api.Pod], conflicts: api.AntiAffinityIndex, evict: api.Evict) -> None:
    """Evict the fewest pods that end all conflicts, then record what protects those that are left in conflict."""
    evict.count({"conflicting": sum(conflicts.conflict(pod) is not None for pod in pods)})
    kept: set[api.Pod] = set()
    while chosen := conflicts.fewest(lambda pod: pod not in kept and evict.evictable(pod)):
        refused = {pod for pod, because in chosen if not evict(pod, because).gone}
        if not refused:
            break
        kept.update(refused)  # others go in their place
    for pod in pods:
        if pod not in kept and (because := conflicts.conflict(pod)):
            evict.evictable(pod, because)
