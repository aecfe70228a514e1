"""Pods by their labels, so that a selector is matched against few of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels, LabelSelector, Requirement


class _Group(NamedTuple):
    """Pods that share one mapping of labels, replicas as a rule."""

    labels: Labels
    pods: list[Pod]


class LabelIndex:
    """Finds the pods that a selector matches.

    The work depends on the number of different label sets that share a label with the selector, not on the number
    of pods.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        groups: dict[int, _Group] = {}
        for pod in pods:
            # Replicas share one mapping, which the pods keep alive.
            groups.setdefault(id(pod.labels), _Group(pod.labels, [])).pods.append(pod)
        self._groups = tuple(groups.values())
        self._by_label: defaultdict[tuple[str, str], list[_Group]] = defaultdict(list)
        for group in self._groups:
            for label in group.labels.items():
                self._by_label[label].append(group)

    def matching(self, selector: LabelSelector) -> list[Pod]:
        """Return the pods whose labels the selector matches, in no particular order."""
        return [pod for labels, pods in self._worth_a_look(selector) if selector.matches(labels) for pod in pods]

    def _worth_a_look(self, selector: LabelSelector) -> Sequence[_Group]:
        narrowed = [self._with_label(each) for each in selector.requirements if each.operator == "In"]
        return min(narrowed, key=len, default=self._groups)

    def _with_label(self, requirement: Requirement) -> Sequence[_Group]:
        values = dict.fromkeys(requirement.values)
        return list(chain.from_iterable(self._by_label.get((requirement.key, value), ()) for value in values))
