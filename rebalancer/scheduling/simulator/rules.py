"""Pod affinity terms of running pods: which pods each term selects, and how many pods per topology domain have it."""

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from enum import Enum

import msgspec

from rebalancer.cluster.pod import Pod, PodAffinityTerm, PodSpec
from rebalancer.cluster.selectors import Labels, LabelSelector
from rebalancer.scheduling.simulator.tally import MatchedPods, Tally


class Strength(Enum):
    """What a term does to the pods that it selects."""

    REPELS = "required anti-affinity"
    ATTRACTS = "required affinity"
    PREFERS = "preferred, for or against"


class Term(msgspec.Struct, frozen=True, gc=False):
    """An affinity term of a pod in some namespace; replicas have equal terms.

    Attributes:
        weight: the weight of a preferred term, negative for anti-affinity; 1 for a required term.
    """

    strength: Strength
    topology_key: str
    condition: MatchedPods
    weight: int = 1


#: A term with the number of running pods that have it, by domain.
AffinityRule = Tally[Term, str]


def condition_of(term: PodAffinityTerm, namespace: str) -> MatchedPods:
    """Return which pods a term in a pod of this namespace selects.

    `namespaces` and `namespaceSelector` add up; without either, the pod's own namespace counts.  `matchLabelKeys` and
    `mismatchLabelKeys` are part of the selector already: they are merged into it when a pod is made (Kubernetes 1.29).
    """
    own = () if term.namespaces or term.namespace_selector is not None else (namespace,)
    return MatchedPods(frozenset(term.namespaces or own), term.selector, term.namespace_selector)


def terms_of(spec: PodSpec, namespace: str) -> list[Term]:
    """Return all terms of a pod's affinity and anti-affinity."""
    placement = spec.placement
    found = [_term(Strength.REPELS, each, namespace) for each in spec.anti_affinity]
    found += [_term(Strength.ATTRACTS, each, namespace) for each in placement.affinity]
    found += [_term(Strength.PREFERS, each.term, namespace, each.weight) for each in placement.preferred_affinity]
    found += [_term(Strength.PREFERS, each.term, namespace, -each.weight) for each in placement.preferred_anti_affinity]
    return found


def _term(strength: Strength, term: PodAffinityTerm, namespace: str, weight: int = 1) -> Term:
    return Term(strength, term.topology_key, condition_of(term, namespace), weight)


class RuleBook:
    """The rules of all running pods.

    Attributes:
        conditions_on_namespaces: the conditions that ask for labels of namespaces.
    """

    def __init__(self, topology: Sequence[Labels], namespaces: dict[str, Labels]) -> None:
        self._topology = topology
        self._namespaces = namespaces
        self._rules: dict[Term, AffinityRule] = {}
        self._by_label: defaultdict[tuple[str, str], list[AffinityRule]] = defaultdict(list)
        self._others: list[AffinityRule] = []
        self.conditions_on_namespaces: list[MatchedPods] = []
        self._terms: dict[tuple[int, str], tuple[PodSpec, list[Term]]] = {}
        self._of_terms: dict[int, list[AffinityRule]] = {}
        self._matching: dict[tuple[str, int], tuple[int, Labels, list[AffinityRule]]] = {}

    def copy(self) -> "RuleBook":
        """Return a copy that follows another cluster from now on."""
        new = copy(self)
        rules = {each: each.copy() for each in self._rules.values()}
        new._rules = {term: rules[each] for term, each in self._rules.items()}  # noqa: SLF001  of its class
        new._by_label = defaultdict(list)  # noqa: SLF001
        for label, found in self._by_label.items():
            new._by_label[label] = [rules[each] for each in found]  # noqa: SLF001
        new._others = [rules[each] for each in self._others]  # noqa: SLF001
        new._of_terms, new._matching = {}, {}  # noqa: SLF001
        new.conditions_on_namespaces = [*self.conditions_on_namespaces]
        return new

    def count(self, pod: Pod, node: int, change: int) -> None:
        """Count the terms of a pod that comes to a node (1), or leaves it (-1)."""
        for rule in self._rules_of(pod):
            value = self._topology[node].get(rule.of.topology_key)
            if value is not None:
                rule.count(value, change)

    def selecting(self, pod: Pod) -> list[AffinityRule]:
        """Return the rules, of any pod, that select this one."""
        key = (pod.namespace, id(pod.labels))  # the value keeps the labels alive
        known = self._matching.get(key)
        if known is None or known[0] != len(self._rules):
            known = self._matching[key] = (len(self._rules), pod.labels, self._find(pod))
        return known[2]

    def _find(self, pod: Pod) -> list[AffinityRule]:
        labels = self._namespaces.get(pod.namespace, {})
        likely = [*self._others, *(rule for label in pod.labels.items() for rule in self._by_label.get(label, ()))]
        return [rule for rule in likely if rule.of.condition.takes(pod.namespace, labels, pod.labels)]

    def terms(self, pod: Pod) -> list[Term]:
        """Return all terms of a pod's affinity and anti-affinity; the same list for replicas."""
        spec = pod.spec
        known = self._terms.get((id(spec), pod.namespace))
        if known is None:  # the value keeps the spec alive
            known = self._terms[id(spec), pod.namespace] = (spec, terms_of(spec, pod.namespace))
        return known[1]

    def _rules_of(self, pod: Pod) -> list[AffinityRule]:
        terms = self.terms(pod)
        if not terms:
            return []
        known = self._of_terms.get(id(terms))
        if known is None:
            known = self._of_terms[id(terms)] = [self._rule(term) for term in terms]
        return known

    def _rule(self, term: Term) -> AffinityRule:
        rule = self._rules.get(term)
        if rule is None:
            rule = self._rules[term] = Tally(term)
            self._shelve(rule)
        return rule

    def _shelve(self, rule: AffinityRule) -> None:
        if rule.of.condition.namespace_selector:
            self.conditions_on_namespaces.append(rule.of.condition)
        label = _asked_label(rule.of.condition.selector)
        if label:
            self._by_label[label].append(rule)
        else:
            self._others.append(rule)


def _asked_label(selector: LabelSelector | None) -> tuple[str, str] | None:
    """Return a label that every selected pod must have; None if no requirement names exactly one value."""
    for each in selector.requirements if selector else ():
        if each.operator == "In" and len(each.values) == 1:
            return each.key, each.values[0]
    return None
