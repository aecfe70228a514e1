"""Steering: what a strategy plans so that replacements land where they help, and what it hears of them.

A strategy that steers makes its moves in waves.  Before the evictions of a wave, nodes that should receive nothing are
avoided: in a live run they carry soft taints.  After them it hears where the replacements landed, and plans the next
wave on that, not on what was foreseen.

Source: the Kubernetes documentation, Taints and Tolerations; scheduling profiles.  TaintToleration has weight 3 and is
normalised over the nodes that are scored: of n, the most untolerated soft taints on any of them, each is worth 300/n
points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rebalancer.cluster.pod import Pod
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.destination import Destination
from rebalancer.eviction.verdict import Verdict

#: How many soft taints a node carries: hot nodes two, others that are avoided one, destinations none.
HOT, MIDDLING = 2, 1


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is to go in a wave.

    Attributes:
        pod: the pod that goes.
        expected: the node on which the plan counts on its replacement.
        likely: all nodes on which it may land as foreseen, `expected` among them; any will do.
        because: why it goes.
    """

    pod: Pod
    expected: str
    likely: tuple[str, ...]
    because: Cause

    @property
    def destination(self) -> Destination:
        """Where the replacement is expected."""
        return Destination.among(self.expected, self.likely)


@dataclass(frozen=True, slots=True)
class Wave:
    """Moves that are made together, and what is avoided meanwhile.

    Attributes:
        avoid: by name of the node, the number of its soft taints; nodes that carry none are left out.
        moves: in the order in which they are asked for; their replacements may arrive in any.
    """

    avoid: Mapping[str, int]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Landing:
    """What became of a pod's replacement.

    Attributes:
        move: the move that was made.
        node: where the replacement is bound; None while it is pending, or if none was seen.
        replacement: its name; empty in a dry run, or if none was seen.
        ready_seconds: how long after the eviction it was Ready; None if that was not seen: then its owner and its PDB
            cannot spare another pod in this run.
    """

    move: Move
    node: str | None
    replacement: str = ""
    ready_seconds: float | None = None

    @property
    def foreseen(self) -> bool:
        """Whether it landed on one of the nodes that were foreseen."""
        return self.node in self.move.likely

    @property
    def is_pending(self) -> bool:
        """Whether a replacement was seen that has no node."""
        return self.node is None and bool(self.replacement)


class Steer(Protocol):
    """What carries waves out beside the evictions, which the strategy asks for as always.

    For each wave: `begin`, the evictions, `settle`.  After the last one `end`, whatever happened; nothing that was
    begun may be left behind then.  A live run and a dry run differ in what stands behind this and in nothing else.

    Attributes:
        min_gain: how many points a move has to bring, by the policy.
        keys: of the soft taints: the first one's, and that of the second one of hot nodes.
    """

    @property
    def min_gain(self) -> float: ...  # noqa: D102

    @property
    def keys(self) -> tuple[str, str]: ...  # noqa: D102

    def begin(self, wave: Wave) -> None:
        """Let the nodes of a wave be avoided, and no others, before its first eviction.

        Raises:
            CycleStopped: that failed, or nothing more may be asked for in this run.
        """
        ...

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[Landing, ...]:
        """Wait until the replacements have landed, and return where.

        Args:
            wave: the one that was begun.
            moved: its moves whose pods go, with what was answered; one that was answered `Unknown` may not have gone.

        Returns:
            One landing for each of them, in their order.

        Raises:
            CycleStopped: the run has to end.  (Of replacements that stay pending the landings tell.)
        """
        ...

    def end(self) -> None:
        """Let nothing be avoided any more."""
        ...


class DrySteer:
    """Writes nothing, and lets every replacement land where it is expected.

    Args:
        min_gain: how many points a move has to bring.
        keys: of the soft taints that a live run would set.
    """

    def __init__(self, min_gain: float, keys: tuple[str, str]) -> None:
        self.min_gain = min_gain
        self.keys = keys

    def begin(self, wave: Wave) -> None:
        """Do nothing."""

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[Landing, ...]:  # noqa: ARG002  the interface
        """Return the landings as they are foreseen."""
        return tuple(Landing(move, move.expected, ready_seconds=0.0) for move, _ in moved)

    def end(self) -> None:
        """Do nothing."""
