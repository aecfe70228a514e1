"""Pods counted by node, kept up to date as pods come and go.

Pods of one namespace with equal labels form a group.  A tally counts the pods of all groups that its
matcher takes.  When a pod comes or goes, only the tallies that count its group are updated.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Generic, TypeVar

import msgspec

from rebalancer.cluster.selectors import Labels, LabelSelector, Requirement

T = TypeVar("T")
K = TypeVar("K")


class MatchedPods(msgspec.Struct, frozen=True, gc=False):
    """Pods of some namespaces that a selector matches.

    Attributes:
        namespaces: names of namespaces.
        selector: None matches nothing.
        namespace_selector: selects further namespaces by their labels.
    """

    namespaces: frozenset[str]
    selector: LabelSelector | None
    namespace_selector: LabelSelector | None = None

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
    """Which pods count: those that meet all conditions.

    Attributes:
        conditions: at least one.
        running_only: whether terminating pods are left out.
    """

    conditions: tuple[MatchedPods, ...]
    running_only: bool = False

    def takes(self, namespace: str, namespace_labels: Labels, labels: Labels) -> bool:
        """Return whether a pod of this namespace with these labels counts."""
        return all(each.takes(namespace, namespace_labels, labels) for each in self.conditions)

    def asked(self) -> Iterable[Requirement]:
        """Return the `In` requirements, which every pod that counts meets."""
        selectors = (each.selector for each in self.conditions)
        return (each for selector in selectors if selector for each in selector.requirements if each.operator == "In")


class Group:
    """Pods of a namespace with equal labels.

    Attributes:
        nodes: how many are on each node, by index.
        leaving: how many of them are terminating.
        tallies: the tallies that count these pods.
    """

    __slots__ = ("_shared", "labels", "leaving", "namespace", "nodes", "tallies")

    def __init__(self, namespace: str, labels: Labels) -> None:
        self.namespace = namespace
        self.labels = labels
        self.nodes: defaultdict[int, int] = defaultdict(int)
        self.leaving: defaultdict[int, int] = defaultdict(int)
        self.tallies: list[NodeTally] = []
        self._shared = False

    def copy(self, tallies: Mapping["NodeTally", "NodeTally"]) -> "Group":
        """Return a copy that counts for itself; the counts are copied when one of the two changes."""
        self._shared = True
        new = copy(self)
        new.tallies = [tallies[each] for each in self.tallies]
        return new

    def own(self) -> None:
        """Make the counts this group's own, to change them."""
        if self._shared:
            self.nodes, self.leaving, self._shared = self.nodes.copy(), self.leaving.copy(), False


class Tally(Generic[T, K]):
    """How many pods of one kind there are, by place.

    Attributes:
        of: which pods count: those that a matcher takes, or those that have an affinity term.
        counts: by index of the node, or by topology domain.
    """

    __slots__ = ("_shared", "counts", "of")

    def __init__(self, of: T) -> None:
        self.of = of
        self.counts: defaultdict[K, int] = defaultdict(int)
        self._shared = False

    def copy(self) -> "Tally[T, K]":
        """Return a copy that counts for itself; the counts are copied when one of the two changes."""
        self._shared = True
        return copy(self)

    def count(self, place: K, change: int) -> None:
        """Add a change to the count of a place."""
        if self._shared:
            self.counts, self._shared = self.counts.copy(), False
        self.counts[place] += change


#: How many pods that a matcher takes are on each node, by index.
NodeTally = Tally[Matcher, int]


class Tallies:
    """The pods of a cluster in their groups, and the tallies over them.

    Attributes:
        unlabelled: groups in namespaces of which no labels are known.
    """

    def __init__(self, namespaces: dict[str, Labels]) -> None:
        self._namespaces = namespaces
        self.unlabelled: list[Group] = []
        self._groups: dict[tuple[str, frozenset[tuple[str, str]]], Group] = {}
        self._known: dict[tuple[str, int], tuple[Group, Labels]] = {}
        self._by_label: defaultdict[tuple[str, str], list[Group]] = defaultdict(list)
        self._tallies: dict[Matcher, NodeTally] = {}

    def copy(self) -> "Tallies":
        """Return a copy that follows another cluster from now on."""
        new = copy(self)
        tallies = {each: each.copy() for each in self._tallies.values()}
        groups = {each: each.copy(tallies) for each in self._groups.values()}
        new._tallies = {matcher: tallies[each] for matcher, each in self._tallies.items()}  # noqa: SLF001  of its class
        new._groups = {key: groups[each] for key, each in self._groups.items()}  # noqa: SLF001
        new._known = {key: (groups[each], labels) for key, (each, labels) in self._known.items()}  # noqa: SLF001
        new._by_label = defaultdict(list)  # noqa: SLF001
        for label, found in self._by_label.items():
            new._by_label[label] = [groups[each] for each in found]  # noqa: SLF001
        new.unlabelled = [groups[each] for each in self.unlabelled]
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
            for label in labels.items():
                self._by_label[label].append(group)
            group.tallies = [each for each in self._tallies.values() if self._takes(each.of, group)]
        return group

    def count(self, group: Group, node: int, change: int, *, leaving: bool) -> None:
        """Count pods of a group that come to a node, or leave it (negative change)."""
        group.own()
        group.nodes[node] += change
        if leaving:
            group.leaving[node] += change
        for tally in group.tallies:
            if not (leaving and tally.of.running_only):
                tally.count(node, change)

    def mark(self, group: Group, node: int, *, leaving: bool) -> None:
        """Count a pod of a group, on a node where it was before, as terminating or no longer."""
        change = 1 if leaving else -1
        group.own()
        group.leaving[node] += change
        for tally in group.tallies:
            if tally.of.running_only:
                tally.count(node, -change)

    def tally(self, matcher: Matcher) -> NodeTally:
        """Return the tally of a matcher."""
        tally = self._tallies.get(matcher)
        if tally is None:
            tally = self._tallies[matcher] = Tally(matcher)
            for group in self._worth_a_look(matcher):
                if self._takes(matcher, group):
                    self._take_in(tally, group)
        return tally

    def _take_in(self, tally: NodeTally, group: Group) -> None:
        group.tallies.append(tally)
        for node, count in group.nodes.items():
            counted = count - (group.leaving.get(node, 0) if tally.of.running_only else 0)
            if counted:
                tally.count(node, counted)

    def _takes(self, matcher: Matcher, group: Group) -> bool:
        return matcher.takes(group.namespace, self._namespaces.get(group.namespace, {}), group.labels)

    def _worth_a_look(self, matcher: Matcher) -> Iterable[Group]:
        """Return the groups that may match: those with a label that a selector asks for."""
        asked = min(matcher.asked(), key=self._with_label, default=None)
        if asked is None:
            return list(self._groups.values())
        return [group for value in set(asked.values) for group in self._by_label[asked.key, value]]

    def _with_label(self, asked: Requirement) -> int:
        return sum(len(self._by_label[asked.key, value]) for value in set(asked.values))
