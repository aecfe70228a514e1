"""What a plugin of the scheduler is here."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rebalancer.cluster.pod import Pod

#: By index of the node, the reasons for which the plugin refuses it, in the scheduler's words.
Refusals = Mapping[int, tuple[str, ...]]

NO_REFUSALS: Refusals = {}


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: str

    def refusals(self, pod: Pod, nodes: Sequence[int], /) -> Refusals:
        """Return which of these nodes the plugin refuses, and why; others may be among them.

        Raises:
            UnknownPlacementError: what the answer hangs on was not read.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Scores nodes."""

    name: str

    def scores(self, pod: Pod, nodes: Sequence[int], /) -> list[int] | None:
        """Return a score for each of these nodes, 0 to 100, in their order; None where the plugin sits out.

        Raises:
            UnknownPlacementError: what the answer hangs on was not read.
        """
        ...


class PodUnschedulableError(Exception):
    """A plugin refuses the pod before it looks at any node; the message is the scheduler's."""


class UnknownPlacementError(Exception):
    """It is not known where the pod would go; the message says why."""
