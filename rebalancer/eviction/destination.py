"""Where the replacement of a pod will likely run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Nobody reads more nodes than this; without a bound a report would list thousands for each pod.
_MOST_NODES = 16
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Destination:
    """The nodes on which a replacement is expected.

    Attributes:
        nodes: one, if the replacement will likely run there; several, if it may run on each: then the plan counts on
            the first.  At most 16 are named.
        more: on how many others it may run as well.
        shares: of each of these nodes, in which part of the possible histories it lands there; empty if that is not
            known.
    """

    nodes: tuple[str, ...]
    more: int = 0
    shares: tuple[float, ...] = ()

    @classmethod
    def seen(cls, expected: str, shares: Mapping[str, float]) -> "Destination":
        """Return a destination of the nodes that were seen in possible histories, with their shares.

        Args:
            expected: the node on which the plan counts.
            shares: by name, the most likely first.
        """
        names = tuple(dict.fromkeys((expected, *shares)))
        named = names[:_MOST_NODES]
        return cls(named, len(names[_MOST_NODES:]), tuple(round(shares.get(name, 0.0), _DECIMALS) for name in named))

    @classmethod
    def among(cls, expected: str, likely: Iterable[str]) -> "Destination":
        """Return a destination of the likely nodes; the expected one, on which the plan counts, comes first."""
        names = tuple(dict.fromkeys((expected, *likely)))
        return cls(names[:_MOST_NODES], len(names[_MOST_NODES:]))
