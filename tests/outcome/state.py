"""The cluster between two cycles, as figures: what each node uses, how even that is, and what was moved."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.outcome.scenarios import Bounds

RESOURCES = ("cpu", "memory")
Shares = Mapping[str, Mapping[str, float]]

# A replacement that is evicted again within so many cycles after its own was moved twice.
CYCLES = 3


@dataclass(frozen=True)
class State:
    """The cluster at one moment."""

    shares: Shares  # what each node uses of each resource, in percent of what it has allocatable, by the metrics API
    places: Mapping[str, str]  # the node of each pod, by the pod's name; "" while it is Pending

    @property
    def pending(self) -> int:
        return sum(not node for node in self.places.values())

    @property
    def by_owner(self) -> list[tuple[str, str]]:
        """The owner and the node of each pod that has one; a pod is named for its owner and a part of its own."""
        return [(name.rpartition("-")[0], node) for name, node in self.places.items() if node]

    @property
    def empty(self) -> int:
        """How many nodes run none of the pods."""
        return len(self.shares.keys() - set(self.places.values()))

    def deviation(self, resource: str) -> float:
        return deviation(self.shares, resource)

    def highest(self, resource: str) -> float:
        return max(share[resource] for share in self.shares.values())


def deviation(shares: Shares, resource: str) -> float:
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


@dataclass(frozen=True)
class Moved:
    """The pods, by name, before and after a cycle, and those whose eviction was granted.

    A pod that is there only afterwards is a replacement.
    """

    before: frozenset[str]
    evicted: frozenset[str]
    after: frozenset[str]

    @property
    def replacements(self) -> frozenset[str]:
        """The pods that were created in this cycle and stay."""
        return self.after - self.before

    @property
    def unexplained(self) -> frozenset[str]:
        """The pods that went without an eviction, or stay in spite of one."""
        return (self.before - self.after) ^ (self.evicted & self.before)


def moved_twice(cycles: Sequence[Moved]) -> list[frozenset[str]]:
    """Return for each cycle the pods evicted in it that replaced another in the cycles just before, or in itself."""
    return [
        frozenset(
            pod
            for pod in moved.evicted
            if pod not in moved.before or any(pod in earlier.replacements for earlier in cycles[max(0, k - CYCLES) : k])
        )
        for k, moved in enumerate(cycles)
    ]
