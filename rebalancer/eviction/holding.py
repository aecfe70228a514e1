"""Holding: nodes that a run has emptied are kept empty for a while, so that an autoscaler finds them so.

A held node carries a soft taint.  The scheduler still takes it if no other node fits, and whoever fills nodes leaves
it out.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Held:
    """A node that is kept empty.

    Attributes:
        node: its name.
        until: when the taint is of no use any more.
        problem: why the taint could not be set; empty if it was.
    """

    node: str
    until: datetime
    problem: str = ""


class Holder(Protocol):
    """Keeps emptied nodes empty; a live run and a dry run differ in the class behind this interface only."""

    def hold(self, node: str) -> Held:
        """Hold a node from now on; a problem is in the answer, and stops nothing."""
        ...


class DryHolder:
    """Writes nothing.

    Args:
        now: the clock of the cycle.
        duration: how long a live run would hold a node.
    """

    def __init__(self, now: datetime, duration: timedelta) -> None:
        self._until = now + duration

    def hold(self, node: str) -> Held:
        """Return until when the node would be held."""
        return Held(node, self._until)
