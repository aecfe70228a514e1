"""Steering and holding: soft taints by which a run keeps pods off nodes for a while.

Steering: what a strategy plans so that replacements land where they help, and how it learns where they landed.

A strategy that steers makes its moves in waves.  Before the evictions of a wave, nodes that should receive nothing are
marked to be avoided: in a live run they get soft taints.  After the evictions the strategy learns where the
replacements landed, and plans the next wave on that, not on the forecast.

Source: the Kubernetes documentation, Taints and Tolerations; scheduling profiles.  TaintToleration has weight 3 and is
normalised over the nodes that are scored: if n is the highest number of untolerated soft taints on any of them, each
taint costs a node 300/n points.

Holding: nodes that a run has emptied are kept empty for a while, so that an autoscaler finds them so.  The scheduler
still takes a held node if no other node fits, and whoever fills nodes leaves it out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import Resources
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.verdict import Verdict

#: As many as receive pods in a wave of steering, as a rule; without a bound a report of a large cluster would list
#: thousands for each pod.
_MOST_NODES = 200
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the replacement of a pod will likely run."""

    #: One, if the replacement will likely run there; several, if it may run on each: then the plan counts on the first.
    #: At most 200 are named.
    nodes: tuple[str, ...]
    more: int = 0  # on how many others it may run as well
    shares: tuple[float, ...] = ()  # in which part of the possible histories it lands on each; empty if unknown

    @classmethod
    def among(cls, expected: str, likely: Iterable[str] | Mapping[str, float]) -> "Destination":
        """Return a destination: first the expected node, then the likely ones by their shares, if there are any."""
        names = tuple(dict.fromkeys((expected, *likely)))
        named, seen = names[:_MOST_NODES], likely if isinstance(likely, Mapping) else {}
        shares = tuple(round(seen.get(name, 0.0), _DECIMALS) for name in named) if seen else ()
        return cls(named, len(names) - len(named), shares)


#: How many soft taints a node carries: hot nodes two, others that are avoided one, destinations none.
HOT, MIDDLING = 2, 1


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is to go in a wave."""

    pod: Pod
    expected: str  # the node on which the plan counts on its replacement
    likely: tuple[str, ...]  # where the replacement should land by the forecast; any of these, with `expected`, is fine
    because: Cause
    usage: Resources = field(default_factory=dict)  # what the pod uses, by resource
    shares: Mapping[str, float] = field(default_factory=dict)  # how likely it lands on each of these, if that is known

    @property
    def destination(self) -> Destination:
        """Where the replacement is expected."""
        return Destination.among(self.expected, self.shares or self.likely)


@dataclass(frozen=True, slots=True)
class Wave:
    """Moves made together, in this order, and how many soft taints each node to be avoided carries meanwhile."""

    avoid: Mapping[str, int]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class ActualPlacement:
    """What became of a pod's replacement."""

    move: Move
    node: str | None  # where the replacement is bound; None while it is pending, or if none was seen
    replacement: str = ""  # its name; empty in a dry run, or if none was seen
    #: How long after the eviction it was Ready; None if that was not seen: then its owner and its PDB cannot spare
    #: another pod in this run.
    ready_seconds: float | None = None
    is_missing: bool = False  # whether a replacement was waited for, and none was seen

    @property
    def foreseen(self) -> bool:
        """Whether it landed on one of the nodes that were foreseen."""
        return self.node in self.move.likely

    @property
    def is_pending(self) -> bool:
        """Whether a replacement was seen that has no node."""
        return self.node is None and bool(self.replacement)


class Steer:
    """Carries out waves, apart from the evictions, which the strategy asks for as always.

    For each wave: `closed`, `begin`, the evictions, `settle`.  After the last one always `end`, even after an error:
    nothing that was begun may be left behind.  This one is that of a dry run: it writes nothing, and takes every
    replacement to land where it is expected.
    """

    def __init__(self, min_gain: float, keys: tuple[str, str]) -> None:
        self.min_gain = min_gain  # how many points a move has to bring, by the policy
        self.keys = keys  # the keys of the first soft taint, and of the second one, which only hot nodes get

    def closed(self, wave: Wave) -> frozenset[str]:  # noqa: ARG002  others look
        """Return the nodes that a wave counts on and that take no pods any more: then another has to be planned.

        Where a pod may land on many nodes, none of these is looked at: the scheduler takes another one.  Raises
        CycleStopped if that is not known.
        """
        return frozenset()

    def begin(self, wave: Wave) -> None:
        """Mark the nodes of a wave, and no others, to be avoided, before its evictions; raises CycleStopped."""

    def settle(self, wave: Wave, moved: Sequence[tuple[Move, Verdict]]) -> tuple[ActualPlacement, ...]:  # noqa: ARG002
        """Wait until the replacements have landed, and return where: one placement for each move, in their order.

        Given are the moves whose pods go, with the verdicts; a pod with the verdict `Unknown` may not have gone.
        Raises CycleStopped if the run has to end; replacements that are pending or missing are for the caller to judge.
        """
        return tuple(ActualPlacement(move, move.expected, ready_seconds=0.0) for move, _ in moved)

    def end(self) -> None:
        """Stop avoiding any node."""


@dataclass(frozen=True, slots=True)
class Held:
    """A node that is kept empty by a taint until then; or the problem why it could not be set."""

    node: str
    until: datetime
    problem: str = ""


#: Holds a node from now on; a problem is in the answer, and stops nothing.
Hold = Callable[[str], Held]
