"""Where a pod would go: the nodes that may win, or why there is none, or why that is not known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rebalancer.scheduling.simulator.plugin import Reasons
from rebalancer.scheduling.simulator.sampling import Parts

#: By plugin, its weighted score.
Scores = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler would do with a pod."""

    # The names of all nodes that may win; it is not known which of several equal ones is taken.  If only a part of the
    # nodes is scored, these are the best of all, those of the part that was asked about, or, `anywhere`, of all parts.
    nodes: tuple[str, ...] = ()
    reason: str = ""  # why there is no such node, in the scheduler's words; empty if there is one
    # Why the answer is not known; empty if it is.  If `reason` is set too, only preemption could help.
    unknown: str = ""
    sampled: bool = False  # whether the scheduler scores only a part of them
    # Returns the scores of a feasible node, plugin by plugin; empty for other nodes.
    scores: Callable[[str], Scores] = field(default=lambda _: {}, compare=False, repr=False)
    # Returns the nodes that score more than the best one less so many points, without what a plugin by this name adds.
    close_to_best: Callable[[str, int], list[str]] = field(default=lambda *_: [], compare=False, repr=False)
    # By node why it does not take the pod, in the scheduler's words; empty unless that was asked for.
    refused: Mapping[str, Reasons] = field(default_factory=dict, compare=False, repr=False)
    # Returns the names of the nodes that the pod could go to.
    feasible_nodes: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    # Returns the names of the nodes that win in some part (see `Parts.winners`).
    winners: Callable[[], tuple[str, ...]] = field(default=tuple, compare=False, repr=False)
    # The feasible nodes and their scores, and which of them may be scored together; None if the pod fits nowhere.
    parts: Parts | None = field(default=None, compare=False, repr=False)

    def without_scores(self) -> "Answer":
        """Return the same without what is worked out of all nodes' scores, which takes much memory."""
        return Answer(self.nodes, self.reason, self.unknown, self.sampled)

    def anywhere(self) -> "Answer":
        """Return the same with the winners of all parts."""
        return replace(self, nodes=self.winners()) if self.sampled else self

    def or_else(self, other: "Answer") -> "Answer":
        """Return the nodes of both answers; if one of them is unknown or has no node, the first such answer."""
        if self == other:
            return self
        for answer in (self, other):
            if answer.unknown or answer.reason:
                return answer
        return replace(self, nodes=tuple(sorted({*self.nodes, *other.nodes})), sampled=self.sampled or other.sampled)
