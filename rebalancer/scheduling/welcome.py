"""Whether there is a node elsewhere where a pod could run and no other pod wants to be apart from it.

Source: kube-scheduler's InterPodAffinity, which heeds the anti-affinity of running pods too; nodeFit, like the
descheduler's, looks at the pod's own alone.
"""

from collections import defaultdict

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.separation import Domain, SeparationRule, domain_of, rules_of


class Welcome:
    """The required anti-affinity of all active pods of a cluster, as it is now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._eligible = cluster.index(EligibleNodes)
        self._declarers: defaultdict[SeparationRule, defaultdict[Domain, list[Pod]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for node in cluster.nodes:
            for pod in cluster.active_pods_on(node):
                for rule in rules_of(pod):
                    self._declarers[rule][domain_of(node, rule.topology_key)].append(pod)

    def elsewhere(self, pod: Pod) -> bool:
        """Return whether some other node takes the pod, and none of the pods there wants to be apart from it.

        A pod that may want that, since labels of namespaces are not known, counts as one that does.
        """
        namespaces = self._cluster.snapshot.namespaces
        against = [
            rule
            for rule in self._declarers
            if rule.covers(pod.namespace, namespaces, in_doubt=True) and rule.selector.matches(pod.labels)
        ]
        return any(
            node.name != pod.node and self._eligible.fits(pod, node) and not self._unwanted(pod, node, against)
            for node in self._cluster.nodes
        )

    def _unwanted(self, pod: Pod, node: Node, against: list[SeparationRule]) -> bool:
        domains = (self._declarers[rule].get(domain_of(node, rule.topology_key), ()) for rule in against)
        return any(declarer is not pod for declarers in domains for declarer in declarers)
