"""Where a pod would go: the nodes that may win, or why there is none, or why nobody knows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: By plugin, its weighted score.
Scores = Mapping[str, int]


def _no_scores(_node: str) -> Scores:
    return {}


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler would do with a pod.

    Attributes:
        nodes: the nodes that may win, by name; all of them, since nothing is known of which of equals is taken.
        reason: where there is none, why, in the scheduler's words.
        unknown: why nobody knows; empty if it is known.  With a reason, too, there is no node but for preemption.
        feasible: how many nodes the pod could go to.
        sampled: whether the scheduler scores a part of them only; then the set is wider.
        favourites: tells, where it does, the best of them: one wins in 99 of 100 parts, if any is as likely as another.
        scores: the score of any feasible node, plugin by plugin; empty for others.
    """

    nodes: tuple[str, ...] = ()
    reason: str = ""
    unknown: str = ""
    feasible: int = 0
    sampled: bool = False
    favourites: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    scores: Callable[[str], Scores] = field(default=_no_scores, compare=False, repr=False)

    @property
    def likely(self) -> tuple[str, ...]:
        """The nodes to reckon with: all that may win, or, where a part is scored, the favourites."""
        return self.favourites() if self.sampled else self.nodes

    @property
    def known(self) -> bool:
        """Whether it is known where the pod would go, or that it would go nowhere."""
        return not self.unknown
