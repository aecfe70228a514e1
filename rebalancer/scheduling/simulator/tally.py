"""Pods counted by node, and their affinity terms, kept up to date as pods come and go.

Pods of one namespace with equal labels form a group.  A tally counts the pods of all groups that its matcher takes.
When a pod comes or goes, only the tallies that count its group are updated.

Which groups, tallies and rules there are is known to a cluster and its copies alike; they differ in the counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from typing import Generic, TypeVar

import msgspec

from rebalancer.cluster.label_index import LabelIndex, SelectorIndex
from rebalancer.cluster.pod import Pod, PodAffinityTerm, PodSpec
from rebalancer.cluster.selectors import Labels, LabelSelector

K = TypeVar("K")
P = TypeVar("P")


class Counts(Generic[K, P]):
    """How many pods of each kind there are, by place; two copies share those of a kind until one changes them."""

    __slots__ = ("_by_kind", "_shared")

    def __init__(self, by_kind: "dict[K, defaultdict[P, int]] | None" = None) -> None:
        self._by_kind = by_kind or {}
        self._shared = set(self._by_kind)

    def __contains__(self, kind: K) -> bool:
        return kind in self._by_kind

    def copy(self) -> "Counts[K, P]":
        """Return a copy that counts for itself."""
        self._shared = set(self._by_kind)
        return Counts(self._by_kind.copy())

    def of(self, kind: K) -> Mapping[P, int]:
        """Return the counts of a kind by place, some of them perhaps 0."""
        return self._by_kind.get(kind, {})

    def begin(self, kind: K) -> None:
        """Count a kind from now on."""
        self._by_kind[kind] = defaultdict(int)

    def add(self, kind: K, place: P, change: int) -> None:
        """Add a change to the count of a place."""
        if kind not in self._by_kind:
            self.begin(kind)
        elif kind in self._shared:
            self._shared.remove(kind)
            self._by_kind[kind] = self._by_kind[kind].copy()
        self._by_kind[kind][place] += change


class MatchedPods(msgspec.Struct, frozen=True, gc=False):
    """Pods of some namespaces that a selector matches."""

    namespaces: frozenset[str]
    selector: LabelSelector | None  # None matches nothing
    namespace_selector: LabelSelector | None = None  # selects further namespaces by their labels

    def takes(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Return whether a pod of this namespace with these labels is selected."""
        here = namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        )
        return here and self.selector is not None and self.selector.matches(labels)

    def hangs_on_labels_of(self, namespace: str, labels: Labels) -> bool:
        """Return whether the namespace's own labels decide about a pod of this namespace with these labels."""
        here = bool(self.namespace_selector) and namespace not in self.namespaces
        return here and self.selector is not None and self.selector.matches(labels)


class Matcher(msgspec.Struct, frozen=True, gc=False):
    """Which pods count: those that meet all conditions."""

    conditions: tuple[MatchedPods, ...]  # at least one
    running_only: bool = False  # whether terminating pods are left out

    def takes(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Return whether a pod of this namespace with these labels counts."""
        return all(each.takes(namespace, namespace_labels, labels) for each in self.conditions)


@dataclass(eq=False, slots=True)
class Group:
    """Pods of a namespace with equal labels, and the tallies that count them."""

    namespace: str
    labels: Labels
    tallies: "list[_Tally]" = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Tally:
    """What counts the pods that a matcher takes."""

    matcher: Matcher
    groups: list[Group] = field(default_factory=list)


class Tallies:
    """The pods of a cluster in their groups, and the tallies over them."""

    def __init__(self, namespaces: dict[str, Labels]) -> None:
        self._namespaces = namespaces
        self.unlabelled: list[Group] = []  # groups in namespaces of which no labels are known
        self._groups: dict[tuple[str, frozenset[tuple[str, str]]], Group] = {}
        self._known: dict[tuple[str, int], tuple[Group, Labels]] = {}
        self._of_namespace: defaultdict[str, LabelIndex[Group]] = defaultdict(LabelIndex)
        self._tallies: dict[Matcher, _Tally] = {}
        self.nodes: Counts[Group, int] = Counts()  # how many pods of each group are on each node, by index
        self._leaving: Counts[Group, int] = Counts()
        self._counts: Counts[_Tally, int] = Counts()

    def copy(self) -> "Tallies":
        """Return a copy that follows another cluster from now on."""
        new = copy(self)
        new.nodes, new._leaving, new._counts = self.nodes.copy(), self._leaving.copy(), self._counts.copy()  # noqa: SLF001  of its class
        return new

    def group(self, namespace: str, labels: Labels) -> Group:
        """Return the group of the pods of a namespace with these labels."""
        known = self._known.get((namespace, id(labels)))  # replicas share one mapping, which the value keeps alive
        if known is None:
            known = self._known[namespace, id(labels)] = (self._find(namespace, labels), labels)
        return known[0]

    def _find(self, namespace: str, labels: Labels) -> Group:
        key = (namespace, frozenset(labels.items()))
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(namespace, labels)
            if namespace not in self._namespaces:
                self.unlabelled.append(group)
            self._of_namespace[namespace].add(labels, group)
            for tally in self._tallies.values():
                self._take_in(tally, group)
        return group

    def _take_in(self, tally: _Tally, group: Group) -> None:
        if tally.matcher.takes(group.namespace, self._namespaces.get(group.namespace, {}), group.labels):
            group.tallies.append(tally)
            tally.groups.append(group)

    def count(self, group: Group, node: int, change: int, *, leaving: bool) -> None:
        """Count pods of a group that come to a node, or leave it (negative change)."""
        self.nodes.add(group, node, change)
        if leaving:
            self._leaving.add(group, node, change)
        for tally in group.tallies:
            if tally in self._counts and not (leaving and tally.matcher.running_only):
                self._counts.add(tally, node, change)

    def mark(self, group: Group, node: int, *, leaving: bool) -> None:
        """Count a pod of a group, on a node where it was before, as terminating or no longer."""
        change = 1 if leaving else -1
        self._leaving.add(group, node, change)
        for tally in group.tallies:
            if tally.matcher.running_only and tally in self._counts:
                self._counts.add(tally, node, -change)

    def tally(self, matcher: Matcher) -> Mapping[int, int]:
        """Return how many pods that a matcher takes are on each node, by index."""
        tally = self._tallies.get(matcher)
        if tally is None:
            tally = self._tallies[matcher] = _Tally(matcher)
            for group in self._selected(matcher.conditions[0]):
                self._take_in(tally, group)
        if tally not in self._counts:
            self._counts.begin(tally)
            for group in tally.groups:
                leaving = self._leaving.of(group) if matcher.running_only else {}
                for node, count in self.nodes.of(group).items():
                    if counted := count - leaving.get(node, 0):
                        self._counts.add(tally, node, counted)
        return self._counts.of(tally)

    def _selected(self, condition: MatchedPods) -> Iterator[Group]:
        """Return the groups that a condition may select, namespace by namespace where it names them."""
        asked = condition.namespaces if condition.namespace_selector is None else self._of_namespace.keys()
        indices = (self._of_namespace[each] for each in sorted(asked & self._of_namespace.keys()))
        selector = condition.selector
        return chain.from_iterable(each.matching(selector) for each in indices) if selector is not None else iter(())


class Strength(Enum):
    """What a term does to the pods that it selects."""

    REPELS = "required anti-affinity"
    ATTRACTS = "required affinity"
    PREFERS = "preferred, for or against"


class AffinityRule(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An affinity term as pods of some namespace have it; it is the same object for equal terms."""

    strength: Strength
    topology_key: str
    condition: MatchedPods
    weight: int = 1  # the weight of a preferred term, negative for anti-affinity; 1 for a required term


def condition_of(term: PodAffinityTerm, namespace: str) -> MatchedPods:
    """Return which pods a term in a pod of this namespace selects.

    `namespaces` and `namespaceSelector` add up; without either, the pod's own namespace counts.  `matchLabelKeys` and
    `mismatchLabelKeys` are part of the selector already: they are merged into it when a pod is made (Kubernetes 1.29).
    """
    own = () if term.namespaces or term.namespace_selector is not None else (namespace,)
    return MatchedPods(frozenset(term.namespaces or own), term.selector, term.namespace_selector)


class RuleBook:
    """The rules of all running pods."""

    def __init__(self, namespaces: dict[str, Labels]) -> None:
        self._namespaces = namespaces
        self._rules: dict[tuple[Strength, str, MatchedPods, int], AffinityRule] = {}
        self._selectors: defaultdict[str | None, SelectorIndex[AffinityRule]] = defaultdict(SelectorIndex)
        self._on_namespaces: list[AffinityRule] = []
        self._known: dict[tuple[int, str], tuple[PodSpec, list[AffinityRule]]] = {}
        self._matching: dict[tuple[str, int], tuple[int, Labels, list[AffinityRule]]] = {}
        self.counts: Counts[AffinityRule, int] = Counts()  # how many pods on each node have a rule, by index

    def copy(self) -> "RuleBook":
        """Return a copy that follows another cluster from now on."""
        new = copy(self)
        new.counts = self.counts.copy()
        return new

    def count(self, pod: Pod, node: int, change: int) -> None:
        """Count the terms of a pod that comes to a node (1), or leaves it (-1)."""
        for rule in self.of(pod):
            self.counts.add(rule, node, change)

    def conditions_on_namespaces(self) -> Iterable[MatchedPods]:
        """Return the conditions of running pods that ask for labels of namespaces."""
        return [rule.condition for rule in self._on_namespaces if rule in self.counts]

    def selecting(self, pod: Pod) -> list[AffinityRule]:
        """Return the rules, of any pod, that select this one."""
        key = (pod.namespace, id(pod.labels))  # the value keeps the labels alive
        known = self._matching.get(key)
        if known is None or known[0] != len(self._rules):
            labels = self._namespaces.get(pod.namespace, {})
            rules = chain.from_iterable(self._selectors[each].matching(pod.labels) for each in (pod.namespace, None))
            found = [rule for rule in rules if rule.condition.takes(pod.namespace, labels, pod.labels)]
            known = self._matching[key] = (len(self._rules), pod.labels, found)
        return known[2]

    def of(self, pod: Pod) -> list[AffinityRule]:
        """Return the rules that a pod's affinity and anti-affinity make; the same list for replicas."""
        spec = pod.spec
        known = self._known.get((id(spec), pod.namespace))
        if known is None:  # the value keeps the spec alive
            near, away = spec.placement.preferred_affinity, spec.placement.preferred_anti_affinity
            terms = [(Strength.REPELS, each, 1) for each in spec.anti_affinity]
            terms += [(Strength.ATTRACTS, each, 1) for each in spec.placement.affinity]
            terms += [(Strength.PREFERS, each.term, each.weight) for each in near]
            terms += [(Strength.PREFERS, each.term, -each.weight) for each in away]
            found = [
                self._rule(strength, term.topology_key, condition_of(term, pod.namespace), weight)
                for strength, term, weight in terms
            ]
            known = self._known[id(spec), pod.namespace] = (spec, found)
        return known[1]

    def _rule(self, *term: *tuple[Strength, str, MatchedPods, int]) -> AffinityRule:
        rule = self._rules.get(term)
        if rule is None:
            rule = self._rules[term] = AffinityRule(*term)
            condition = rule.condition
            if condition.selector is not None:  # those of labelled namespaces are under None
                for place in condition.namespaces if condition.namespace_selector is None else (None,):
                    self._selectors[place].add(condition.selector, rule)
            if condition.namespace_selector:
                self._on_namespaces.append(rule)
        return rule
