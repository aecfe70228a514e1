"""Which pods break their own required anti-affinity, and against which other pod.

Terms are read as the scheduler reads them: `namespaces` and `namespaceSelector` add up, `matchLabelKeys` and
`mismatchLabelKeys` narrow the selector by the pod's own labels.  Source: the Kubernetes documentation, Assigning Pods
to Nodes.  As in the descheduler, two pods with the same name never conflict, and two pods on one node conflict even if
the node lacks the topology label.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.selectors import Labels, LabelSelector, Requirement
from rebalancer.eviction.causes import Cause, Code, cause


class _Rule(NamedTuple):
    """A term as it applies to one pod; replicas have equal rules."""

    topology_key: str
    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None


class _Domain(NamedTuple):
    """A topology domain: the value of the label, or the node's name where the node lacks the label."""

    labelled: bool
    value: str


class AntiAffinityIndex:
    """Finds pods that break their anti-affinity; pods that have left the cluster no longer count.

    The pods are sorted into topology domains once for each different rule, so the work grows almost linearly with
    their number.

    Args:
        cluster: the cluster they run on.
        pods: the pods, in the order in which they would go.
    """

    def __init__(self, cluster: Cluster, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._rank = {pod: rank for rank, pod in enumerate(pods)}
        by_namespace: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            by_namespace[pod.namespace].append(pod)
        self._labelled = {namespace: LabelIndex(each) for namespace, each in by_namespace.items()}
        self._domains: dict[_Rule, dict[_Domain, list[Pod]]] = {}

    def conflict(self, pod: Pod) -> Cause | None:
        """Return with which other pod this one breaks its own required anti-affinity; None if with none.

        If there are several, it is the one that would go last.
        """
        for term in pod.spec.anti_affinity:
            rule = _rule(term, pod)
            domain = self._domain(pod, term.topology_key)
            other = self._last_other(pod, self._by_domain(rule).get(domain, [])) if rule else None
            if other:
                topology = {"key": term.topology_key, "value": domain.value} if domain.labelled else None
                return cause(Code.ANTI_AFFINITY_VIOLATED, pod=str(other), node=other.node, topology=topology)
        return None

    def _last_other(self, pod: Pod, peers: list[Pod]) -> Pod | None:
        while peers and not self._cluster.contains(peers[-1]):
            peers.pop()
        others = (each for each in reversed(peers) if each.name != pod.name)
        return next((each for each in others if self._cluster.contains(each)), None)

    def _by_domain(self, rule: _Rule) -> dict[_Domain, list[Pod]]:
        known = self._domains.get(rule)
        return self._domains.setdefault(rule, self._sorted_out(rule)) if known is None else known

    def _sorted_out(self, rule: _Rule) -> dict[_Domain, list[Pod]]:
        found = [
            pod for namespace in self._namespaces(rule) for pod in self._labelled[namespace].matching(rule.selector)
        ]
        domains: dict[_Domain, list[Pod]] = {}
        for pod in sorted(found, key=self._rank.__getitem__):
            domains.setdefault(self._domain(pod, rule.topology_key), []).append(pod)
        return domains

    def _domain(self, pod: Pod, topology_key: str) -> _Domain:
        """Return the domain of a pod's node; a node without the label is a domain of its own."""
        node = self._cluster.node(pod.node)
        value = node.labels.get(topology_key) if node else None
        return _Domain(False, pod.node) if value is None else _Domain(True, value)

    def _namespaces(self, rule: _Rule) -> Iterable[str]:
        selector = rule.namespace_selector
        return [
            each
            for each in self._labelled
            if each in rule.namespaces or (selector is not None and self._selected(each, selector))
        ]

    def _selected(self, namespace: str, selector: LabelSelector) -> bool:
        """Return whether a namespace's labels match; if they are unknown, only the empty selector matches."""
        labels = (self._cluster.snapshot.namespaces or {}).get(namespace)
        return not selector if labels is None else selector.matches(labels)


def _rule(term: PodAffinityTerm, pod: Pod) -> _Rule | None:
    """Return the term as it applies to the pod; a term without a selector applies to nothing."""
    if term.selector is None:
        return None
    own = () if term.namespaces or term.namespace_selector is not None else (pod.namespace,)
    selector = _narrowed(term.selector, term, pod.labels)
    return _Rule(term.topology_key, selector, term.namespaces or own, term.namespace_selector)


def _narrowed(selector: LabelSelector, term: PodAffinityTerm, labels: Labels) -> LabelSelector:
    keys = [("In", key) for key in term.match_label_keys] + [("NotIn", key) for key in term.mismatch_label_keys]
    extra = [Requirement(key, operator, (labels[key],)) for operator, key in keys if key in labels]
    return LabelSelector(tuple(sorted((*selector.requirements, *extra)))) if extra else selector
