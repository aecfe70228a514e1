"""What has labels found by selectors, and selectors found by labels, without a look at each.

Both are sorted by one label, or by a key that has to exist.  Example: 30,000 pods have 2,000 sets of labels.  The
selector `app=web, tier=gold` is matched against the few sets with `app=web`, not against those with `tier=gold`, of
which there are more.  The other way round, the labels `app=web, tier=gold` are matched against the selectors that ask
for one of these two, and against those that ask for neither a value nor a key.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels, LabelSelector, Requirement

T = TypeVar("T")

#: A label with its value, or its key alone.
_Label: TypeAlias = tuple[str, str] | str


class _Group(NamedTuple):
    """What shares one mapping of labels, replicas as a rule; a dict keeps the order."""

    labels: Labels
    members: dict[object, None]


class LabelIndex(Generic[T]):
    """Finds what a selector matches; the work depends on how many label sets share a label with it, not on members."""

    def __init__(self) -> None:
        self._groups: dict[int, _Group] = {}
        self._by_label: defaultdict[_Label, list[_Group]] = defaultdict(list)

    def add(self, labels: Labels, member: T) -> None:
        """Add what has these labels."""
        # Replicas share one mapping, which the group keeps alive.
        group = self._groups.get(id(labels))
        if group is None:
            group = self._groups[id(labels)] = _Group(labels, {})
            for label in labels.items():
                self._by_label[label].append(group)
                self._by_label[label[0]].append(group)
        group.members[member] = None

    def remove(self, labels: Labels, member: T) -> None:
        """Take out what was added with these labels."""
        del self._groups[id(labels)].members[member]

    def matching(self, selector: LabelSelector) -> list[T]:
        """Return the members whose labels the selector matches, in no particular order."""
        found = (group for group in self._worth_a_look(selector) if group.members and selector.matches(group.labels))
        return [member for group in found for member in group.members]  # type: ignore[misc]  # a group holds what T is

    def most(self, selector: LabelSelector, limit: int) -> int:
        """Return how many members a selector matches at most; no number beyond the limit is exact."""
        groups = self._worth_a_look(selector)
        return len(groups) if len(groups) >= limit else sum(len(group.members) + 1 for group in groups)

    def _worth_a_look(self, selector: LabelSelector) -> Sequence[_Group]:
        narrowed = [
            [self._by_label.get(label, ()) for label in _labels_of(each)]
            for each in selector.requirements
            if _narrows(each)
        ]
        if not narrowed:
            return list(self._groups.values())
        fewest = min(narrowed, key=lambda lists: sum(map(len, lists)))
        return fewest[0] if len(fewest) == 1 else list(chain.from_iterable(fewest))


def of_pods(pods: Iterable[Pod]) -> LabelIndex[Pod]:
    """Return an index of pods by their labels."""
    index: LabelIndex[Pod] = LabelIndex()
    for pod in pods:
        index.add(pod.labels, pod)
    return index


class SelectorIndex(Generic[T]):
    """Finds the owners of the selectors that match labels; an absent selector matches nothing."""

    def __init__(self) -> None:
        self._by_label: defaultdict[_Label, list[tuple[LabelSelector, T]]] = defaultdict(list)
        self._others: list[tuple[LabelSelector, T]] = []

    def add(self, selector: LabelSelector, owner: T) -> None:
        """Add a selector, by the label that fewest others are found by."""
        asked = [_labels_of(each) for each in selector.requirements if _narrows(each)]
        if not asked:
            self._others.append((selector, owner))
            return
        for label in min(asked, key=lambda labels: sum(len(self._by_label.get(each, ())) + 1 for each in labels)):
            self._by_label[label].append((selector, owner))

    def matching(self, labels: Labels) -> Iterator[T]:
        """Yield the owner of each selector that matches, in no particular order."""
        asked: Iterator[_Label] = chain(labels.items(), labels)
        found = (self._by_label[label] for label in asked if label in self._by_label)
        for selector, owner in chain(self._others, chain.from_iterable(found)):
            if selector.matches(labels):
                yield owner


def is_narrow(selector: LabelSelector) -> bool:
    """Return whether a selector asks for a label, so that few of all label sets have to be looked at."""
    return any(map(_narrows, selector.requirements))


def _narrows(requirement: Requirement) -> bool:
    return requirement.operator in ("In", "Exists")


def _labels_of(requirement: Requirement) -> list[_Label]:
    """Return the labels (or the key) of which one has to be there; each once, so that nothing is found twice."""
    if requirement.operator == "Exists":
        return [requirement.key]
    return [(requirement.key, value) for value in dict.fromkeys(requirement.values)]
