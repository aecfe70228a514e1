"""RemovePodsViolatingInterPodAntiAffinity: evict pods from topology domains of pods they want to be apart from.

A pod violates its own required anti-affinity if another pod that one of its terms selects runs on the same node, or on
a node with the same value of the term's topologyKey.  The pod that declares the term goes, never the one it dislikes,
unless that one declares a matching term too.  Preferred terms do not count.

Node by node the cheapest pods go first: no priority before any, low before high.  What went is no longer in the way of
the pods after it, so of three pods that dislike each other two go.

Only pods that `namespaces` and `labelSelector` let through are looked at, on both sides: narrowing them hides
conflicts.  Terms are read as the scheduler reads them, with namespaceSelector, matchLabelKeys and mismatchLabelKeys.
"""

from rebalancer.api import AntiAffinityIndex, Cluster, Deschedule, Evict, PodArgs, cheapest_first


class RemovePodsViolatingInterPodAntiAffinityArgs(PodArgs):
    """Which pods to look at."""


class RemovePodsViolatingInterPodAntiAffinity(Deschedule[RemovePodsViolatingInterPodAntiAffinityArgs]):
    """Evict pods that break their own anti-affinity."""

    name = "RemovePodsViolatingInterPodAntiAffinity"
    Args = RemovePodsViolatingInterPodAntiAffinityArgs
    needs = frozenset({"Namespace"})

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Evict the pods that match, node by node, the cheapest first."""
        pods = [
            pod
            for node in cluster.nodes
            for pod in cheapest_first([each for each in cluster.active_pods_on(node) if self.args.selects(each)])
        ]
        evict.count({"pods": len(pods), "conflicting": 0})
        conflicts = AntiAffinityIndex(cluster, pods)
        for pod in pods:
            because = conflicts.conflict(pod)
            if not because:
                continue
            evict.count({"conflicting": 1})
            if evict.evictable(pod, because):
                evict(pod, because)
