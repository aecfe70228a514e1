"""Where the replacement of a pod will likely run."""

from collections.abc import Iterable
from dataclasses import dataclass

#: Nobody reads more nodes than this; without a bound a report would list thousands for each pod.
_MOST_NODES = 16


@dataclass(frozen=True, slots=True)
class Destination:
    """The nodes on which a replacement is expected.

    Attributes:
        nodes: one, if the replacement will likely run there; several, if it may run on each: then the plan counts on
            the first.  At most 16 are named.
        more: on how many others it may run as well.
    """

    nodes: tuple[str, ...]
    more: int = 0

    @property
    def is_one(self) -> bool:
        """Whether the replacement is expected on one node, not on one of several."""
        return len(self.nodes) == 1

    @classmethod
    def among(cls, expected: str, likely: Iterable[str]) -> "Destination":
        """Return a destination of the likely nodes; the expected one, on which the plan counts, comes first."""
        names = tuple(dict.fromkeys((expected, *likely)))
        return cls(names[:_MOST_NODES], len(names[_MOST_NODES:]))
