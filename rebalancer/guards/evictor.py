"""DefaultEvictor: which pods a profile lets go, and whether they have somewhere to go."""

from rebalancer.args.evictor import DefaultEvictorArgs
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.fit import tally
from rebalancer.cluster.pod import SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.cluster.selectors import parse_selector_text
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import UsageError
from rebalancer.eviction.verdict import Refused
from rebalancer.guards.protections import ABSOLUTE, configured, on_unread_nodes
from rebalancer.scheduling.homes import Homes


class Evictor:
    """The filters of one profile on one cluster; each answer is None, or the refusal with its first cause."""

    def __init__(self, cluster: Cluster, args: DefaultEvictorArgs) -> None:
        self._cluster = cluster
        self._args = args
        self._absolute = (*ABSOLUTE, on_unread_nodes(cluster))
        self._protections = tuple(configured(args, threshold(args, cluster.snapshot), cluster))
        selector = parse_selector_text(args.node_selector)
        self._destinations = tuple(node for node in cluster.ready_nodes if selector.matches(node.labels))
        self._homes = Homes(cluster, self._destinations)

    def protection(self, pod: Pod) -> Refused | None:
        """Return which protection covers the pod; the annotation `evict` lifts all but the absolute ones."""
        for protection in self._absolute:
            if refusal := protection.refusal(pod):
                return refusal
        if pod.evict_annotation:
            return None
        return next(filter(None, (each.refusal(pod) for each in self._protections)), None)

    def too_few_replicas(self, pod: Pod, gone: int = 0) -> Refused | None:
        """Return a refusal if the pod's one owner has fewer pods left than minReplicas.

        Pods without an owner or with several pass, as in the reference.

        Args:
            pod: the pod in question.
            gone: how many pods of this owner are to count as gone beside those that are.
        """
        minimum = self._args.min_replicas
        if minimum <= 1 or pod.evict_annotation or len(pod.owners) != 1:
            return None
        count = self._cluster.siblings(pod.owners[0].uid) - gone
        return Refused("MinReplicas", f"owner has {count} pods, fewer than {minimum}") if count < minimum else None

    def homeless(self, pod: Pod) -> Refused | None:
        """Return a refusal if nodeFit is on and no other node takes the pod, or its namespace is not selected."""
        if self._args.node_fit and not self._homes.takes(pod):
            return Refused("NodeFit", self._why_homeless(pod))
        return self._namespace_not_selected(pod)

    def refusal(self, pod: Pod) -> Refused | None:
        """Return the first cause for which the pod may not go, or None."""
        return self.protection(pod) or self.homeless(pod) or self.too_few_replicas(pod)

    def _namespace_not_selected(self, pod: Pod) -> Refused | None:
        selector = self._args.namespace_label_selector
        if not selector:
            return None
        labels = (self._cluster.snapshot.namespaces or {}).get(pod.namespace)
        if labels is None:
            return Refused("NamespaceLabelSelector", f"labels of namespace {pod.namespace} are unknown")
        if selector.matches(labels):
            return None
        return Refused("NamespaceLabelSelector", f"labels of namespace {pod.namespace} do not match")

    def _why_homeless(self, pod: Pod) -> str:
        others = [node for node in self._destinations if node.name != pod.node]
        if not others:
            return "there is no other node"
        causes = tally(self._cluster.why_not(pod, node) for node in others)
        return f"fits none of {len(others)} other nodes: {causes}"


def threshold(args: DefaultEvictorArgs, snapshot: Snapshot) -> int:
    """Return the priority from which on pods stay.

    Raises:
        UsageError: the policy names a PriorityClass that the cluster does not have.
    """
    given = args.priority_threshold
    if not given.name:
        return SYSTEM_CRITICAL_PRIORITY if given.value is None else given.value
    value = (snapshot.priority_classes or {}).get(given.name)
    if value is None:
        raise UsageError(f"priorityThreshold names the PriorityClass {given.name!r}, which the cluster does not have")
    return value
