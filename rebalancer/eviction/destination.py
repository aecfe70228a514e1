"""Where a pod that goes will likely run."""

from collections.abc import Iterable
from dataclasses import dataclass

#: Nobody reads more nodes than this; without a bound a report would list thousands for each pod.
_MOST_NODES = 16


@dataclass(frozen=True, slots=True)
class Destination:
    """The nodes on which a replacement is expected.

    Attributes:
        nodes: one if the replacement will likely run there; of several each is equally likely, and the plan counts on
            the first one.  At most 16 are named.
    """

    nodes: tuple[str, ...]

    @property
    def is_one(self) -> bool:
        """Whether the replacement is expected on one node, not on any of several."""
        return len(self.nodes) == 1

    @classmethod
    def among(cls, expected: str, likely: Iterable[str]) -> "Destination":
        """Return the destination of a pod that the plan counts on one of its likely nodes."""
        others = (name for name in likely if name != expected)
        return cls((expected, *others)[:_MOST_NODES])
