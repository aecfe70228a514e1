"""Which pods break their own required anti-affinity, and against which other pod.

Terms are read as the scheduler reads them: `namespaces` and `namespaceSelector` add up, `matchLabelKeys` and
`mismatchLabelKeys` narrow the selector by the pod's own labels.  As in the descheduler, two pods with the same name
never conflict, and two pods on one node conflict even if the node lacks the topology label.

Sources: the Kubernetes documentation, Assigning Pods to Nodes; kube-scheduler's InterPodAffinity, which heeds the
anti-affinity of running pods too; nodeFit, like the descheduler's, looks at the pod's own alone.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import LabelIndex, is_narrow, of_pods
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels, LabelSelector
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.scheduling.conflict_graph import Clash, fewest
from rebalancer.scheduling.eligibility import EligibleNodes


class SeparationRule(NamedTuple):
    """A term as it applies to one pod; replicas have equal rules."""

    topology_key: str
    selector: LabelSelector
    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector | None

    def covers(self, namespace: str, known: Mapping[str, Labels] | None, *, in_doubt: bool = False) -> bool:
        """Return whether the rule covers a namespace: without known labels if its selector is empty, or in doubt."""
        if namespace in self.namespaces:
            return True
        if self.namespace_selector is None:
            return False
        labels = (known or {}).get(namespace)
        return (in_doubt or not self.namespace_selector) if labels is None else self.namespace_selector.matches(labels)


class Domain(NamedTuple):
    """A topology domain: the value of the label, or the node's name where the node lacks the label."""

    labelled: bool
    value: str


def rules_of(pod: Pod) -> Iterator[SeparationRule]:
    """Yield the rules that a pod declares; a term without a selector applies to nothing."""
    for term in pod.spec.anti_affinity:
        if term.selector is not None:
            own = () if term.namespaces or term.namespace_selector is not None else (pod.namespace,)
            narrowed = term.selector.narrowed(pod.labels, term.match_label_keys, term.mismatch_label_keys)
            yield SeparationRule(term.topology_key, narrowed, term.namespaces or own, term.namespace_selector)


def domain_of(node: Node, topology_key: str) -> Domain:
    """Return the domain of a node; one without the label is a domain of its own."""
    value = node.labels.get(topology_key)
    return Domain(False, node.name) if value is None else Domain(True, value)


def welcome_elsewhere(cluster: Cluster) -> Callable[[Pod], bool]:
    """Return what says whether another node takes a pod, and none of the pods there now wants to be apart from it.

    A pod that may want that, since labels of namespaces are not known, counts as one that does.
    """
    eligible, namespaces = cluster.index(EligibleNodes), cluster.snapshot.namespaces
    declarers: defaultdict[SeparationRule, defaultdict[Domain, list[Pod]]] = defaultdict(lambda: defaultdict(list))
    for node in cluster.nodes:
        for pod in cluster.active_pods_on(node):
            for rule in rules_of(pod):
                declarers[rule][domain_of(node, rule.topology_key)].append(pod)

    def is_unwanted(pod: Pod, node: Node, against: list[SeparationRule]) -> bool:
        domains = (declarers[rule].get(domain_of(node, rule.topology_key), ()) for rule in against)
        return any(declarer is not pod for there in domains for declarer in there)

    def is_welcome(pod: Pod) -> bool:
        covering = [rule for rule in declarers if rule.covers(pod.namespace, namespaces, in_doubt=True)]
        against = [rule for rule in covering if rule.selector.matches(pod.labels)]
        others = (node for node in cluster.nodes if node.name != pod.node)
        return any(eligible.fits(pod, node) and not is_unwanted(pod, node, against) for node in others)

    return is_welcome


#: So many pods may be sorted into domains for each pod, and for each question.
_SORTED = 16
#: Some pods of a domain in their order, and which of them count.
_Peers = tuple[list[Pod], Callable[[Pod], bool]]


class AntiAffinityIndex:
    """Finds pods that break their anti-affinity; pods that have left the cluster no longer count.

    The pods are sorted into topology domains once for each different rule, so the work grows almost linearly with
    their number.  They are given in the order in which they would go.
    """

    def __init__(self, cluster: Cluster, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._rank = {pod: rank for rank, pod in enumerate(pods)}
        by_namespace: defaultdict[str, list[Pod]] = defaultdict(list)
        for pod in pods:
            by_namespace[pod.namespace].append(pod)
        self._labelled = {namespace: of_pods(each) for namespace, each in by_namespace.items()}
        self._namespaces: LabelIndex[str] = LabelIndex()
        for namespace, labels in (cluster.snapshot.namespaces or {}).items():
            self._namespaces.add(labels, namespace)
        self._domains: dict[SeparationRule, dict[Domain, list[Pod]]] = {}
        self._everywhere: dict[str, dict[Domain, list[Pod]]] = {}
        self._may_sort = _SORTED * len(pods)

    def conflict(self, pod: Pod) -> Cause | None:
        """Return with which other pod, the last to go, this one breaks its required anti-affinity; None if none."""
        return self._conflict(pod, self._cluster.contains)

    def fewest(self, may_go: Callable[[Pod], bool]) -> list[tuple[Pod, Cause]]:
        """Return the fewest pods whose going ends all conflicts that can be ended, in their order, each with its cause.

        Of equally few they are the cheapest; see `rebalancer.scheduling.conflict_graph.fewest`.  Pods that are leaving
        already are in nobody's way.  A pod that breaks no term of its own goes only if it is welcome elsewhere.
        `may_go` is asked for pods in conflict.
        """
        is_welcome = welcome_elsewhere(self._cluster)

        def may_leave(pod: Pod) -> bool:
            return may_go(pod) and bool(self._conflict(pod, self._stays) or is_welcome(pod))

        chosen = fewest(self._clashes(), self._rank.__getitem__, may_leave)
        leaving = {pod for pod, _ in chosen}
        return [(pod, self._why(pod, in_the_way_of, leaving)) for pod, in_the_way_of in chosen]

    def _why(self, pod: Pod, in_the_way_of: Sequence[Pod], leaving: Collection[Pod]) -> Cause:
        broken = self._conflict(pod, lambda each: each not in leaving and self._stays(each))
        if broken:
            return broken
        first, *others = in_the_way_of
        return cause(Code.IN_THE_WAY, pod=str(first), node=first.node, others=len(others))

    def _conflict(self, pod: Pod, counts: Callable[[Pod], bool]) -> Cause | None:
        for rule in rules_of(pod):
            domain = self._domain(pod, rule.topology_key)
            if other := self._last_other(pod, self._peers(rule, domain), counts):
                topology = {"key": rule.topology_key, "value": domain.value} if domain.labelled else None
                return cause(Code.ANTI_AFFINITY_VIOLATED, pod=str(other), node=other.node, topology=topology)
        return None

    def _last_other(self, pod: Pod, among: _Peers, counts: Callable[[Pod], bool]) -> Pod | None:
        peers, selects = among
        while peers and not self._cluster.contains(peers[-1]):
            peers.pop()
        others = (each for each in reversed(peers) if each.name != pod.name and selects(each))
        return next((each for each in others if counts(each)), None)

    def _peers(self, rule: SeparationRule, domain: Domain) -> _Peers:
        """Return the pods of a domain that a rule selects.

        Where sorting what it selects into domains is not worth it, the pods are looked at one by one, from the last on:
        a rule that selects many finds one soon.
        """
        self._may_sort += _SORTED
        if rule in self._domains or self._is_worth_sorting(rule):
            return self._by_domain(rule).get(domain, []), lambda _: True
        known = self._cluster.snapshot.namespaces
        if rule.topology_key not in self._everywhere:
            self._everywhere[rule.topology_key] = self._in_domains(self._rank, rule.topology_key)

        def selects(pod: Pod) -> bool:
            return rule.covers(pod.namespace, known) and rule.selector.matches(pod.labels)

        return self._everywhere[rule.topology_key].get(domain, []), selects

    def _is_worth_sorting(self, rule: SeparationRule) -> bool:
        """Return whether a rule selects few pods, or many have asked: each pod may have a rule of its own.

        A rule that asks for no label selects most pods as a rule, or most namespaces.
        """
        if not is_narrow(rule.selector) or (rule.namespace_selector and not is_narrow(rule.namespace_selector)):
            return False
        number = 0
        for labelled in self._among(rule):
            number += 1 + labelled.most(rule.selector, self._may_sort - number)
            if number >= self._may_sort:
                return False
        self._may_sort -= number
        return True

    def _among(self, rule: SeparationRule) -> Iterable[LabelIndex[Pod]]:
        """Return the pods of the namespaces that a rule is about, by their labels."""
        if rule.namespace_selector is not None and not rule.namespace_selector:
            return [self._all]
        selected = self._namespaces.matching(rule.namespace_selector) if rule.namespace_selector else ()
        names = dict.fromkeys((*rule.namespaces, *selected))
        return [self._labelled[name] for name in names if name in self._labelled]

    @cached_property
    def _all(self) -> LabelIndex[Pod]:
        return of_pods(self._rank)

    def _stays(self, pod: Pod) -> bool:
        return self._cluster.contains(pod) and not pod.terminating and not pod.evacuating

    def _clashes(self) -> Iterator[Clash]:
        """Yield the pods of each rule and domain with those that it keeps apart from them."""
        declarers: defaultdict[tuple[SeparationRule, Domain], list[Pod]] = defaultdict(list)
        for pod in filter(self._stays, self._rank):
            for rule in rules_of(pod):
                declarers[rule, self._domain(pod, rule.topology_key)].append(pod)
        for (rule, domain), pods in declarers.items():
            unwanted = list(filter(self._stays, self._by_domain(rule).get(domain, ())))
            if unwanted and {*pods, *unwanted} != {pods[0]}:
                yield pods, unwanted

    def _by_domain(self, rule: SeparationRule) -> dict[Domain, list[Pod]]:
        if rule not in self._domains:
            labelled = self._among(rule)
            found = sorted(
                (pod for each in labelled for pod in each.matching(rule.selector)), key=self._rank.__getitem__
            )
            self._domains[rule] = self._in_domains(found, rule.topology_key)
        return self._domains[rule]

    def _in_domains(self, pods: Iterable[Pod], topology_key: str) -> dict[Domain, list[Pod]]:
        domains: dict[Domain, list[Pod]] = {}
        for pod in pods:
            domains.setdefault(self._domain(pod, topology_key), []).append(pod)
        return domains

    def _domain(self, pod: Pod, topology_key: str) -> Domain:
        node = self._cluster.node(pod.node)
        return domain_of(node, topology_key) if node else Domain(False, pod.node)
