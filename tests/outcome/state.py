"""The cluster between two cycles, as figures: what each node uses, and how even that is."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from tests.outcome.policies import Bounds

RESOURCES = ("cpu", "memory")
Shares = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class State:
    """The cluster at one moment.

    Attributes:
        shares: What each node uses of each resource, in percent of what it has allocatable, by the metrics API.
        truth: The same by what its pods are said to use, without the jitter of measuring.
        places: The node of each pod, by the pod's name; "" while it is Pending.
    """

    shares: Shares
    truth: Shares
    places: Mapping[str, str]

    @property
    def pending(self) -> int:
        """How many pods are Pending."""
        return sum(not node for node in self.places.values())

    @property
    def by_owner(self) -> list[tuple[str, str]]:
        """The owner and the node of each pod that has one; a pod is named for its owner and a part of its own."""
        return [(name.rpartition("-")[0], node) for name, node in self.places.items() if node]

    @property
    def empty(self) -> int:
        """How many nodes run none of the pods."""
        return len(self.shares.keys() - set(self.places.values()))

    @property
    def noise(self) -> float:
        """How far off the metrics API's figures are at most, in points."""
        return max(
            abs(share[name] - self.truth[node][name]) for node, share in self.shares.items() for name in RESOURCES
        )

    def deviation(self, resource: str) -> float:
        """The standard deviation of the nodes' shares, in points."""
        return deviation(self.shares, resource)

    def highest(self, resource: str) -> float:
        """The highest share of a node, in percent."""
        return max(share[resource] for share in self.shares.values())


def deviation(shares: Shares, resource: str) -> float:
    """Return the standard deviation of the nodes' shares, in points."""
    return statistics.pstdev(share[resource] for share in shares.values())


def over(shares: Shares, bounds: Bounds) -> set[str]:
    """Return the nodes that are above the upper bound of some resource."""
    limit = {name: _around(shares, bounds, name, points) for name, points in bounds.high.items()}
    return {node for node, share in shares.items() if any(share[name] > limit[name] for name in limit)}


def below_band(shares: Shares, bounds: Bounds) -> set[str]:
    """Return the nodes that are below the band around the mean in some resource; without a band there are none."""
    if not bounds.deviation:
        return set()
    limit = {name: _around(shares, bounds, name, -points) for name, points in bounds.low.items()}
    return {node for node, share in shares.items() if any(share[name] < limit[name] for name in limit)}


def _around(shares: Shares, bounds: Bounds, resource: str, points: float) -> float:
    if not bounds.deviation:
        return points
    return statistics.fmean(share[resource] for share in shares.values()) + points
