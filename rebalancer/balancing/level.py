"""How far a node is above its targets, in points: percent of what it has allocatable."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from rebalancer.balancing.usage import NodeLoad, Percentages, compared
from rebalancer.cluster.resources import Resources, add

#: Less than this is the noise of floating point.
_NOISE = 1e-9
_DECIMALS = 9
_WHOLE = 100.0

Points = Mapping[str, float]


def number_text(value: float) -> str:
    """Return a number with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


class Level(NodeLoad):
    """What one node uses, with pods that come and go."""

    def charge(self, amounts: Resources) -> None:
        """Count the usage of a pod that comes."""
        add(self.used, {name: amount for name, amount in amounts.items() if name in self.used})

    def points(self, amounts: Resources) -> Points:
        """Return amounts in percent of what the node has; infinite for what it lacks."""
        return {name: self._share(name, amounts.get(name, 0)) for name in self.used}

    def percents(self) -> Points:
        """Return how full the node is of what it offers."""
        return {name: self.percent(name) or 0.0 for name in self.used}

    def above(self, targets: Percentages) -> "Excess":
        """Return how far the node is above its targets; a resource that it does not offer is not."""
        over = {name: (self.percent(name) or 0.0) - bound for name, bound in sorted(targets.items())}
        return Excess({name: points for name, points in over.items() if points > _NOISE})

    def within(self, thresholds: Percentages) -> bool:
        """Tell whether no resource is above its threshold, but for the noise of floating point."""
        return not self.above(thresholds).points

    def lacks(self, floors: Percentages) -> bool:
        """Tell whether some resource is below its floor."""
        return any((self.percent(name) or 0.0) < floor for name, floor in floors.items())

    def passed(self, amounts: Resources, ceilings: Percentages) -> str:
        """Return which ceiling the node would pass with these amounts beside what it uses, empty if none.

        A resource without a ceiling may be used up to the whole.
        """
        for name, used in self.used.items():
            ceiling = ceilings.get(name, _WHOLE)
            if self._share(name, used + amounts.get(name, 0)) > ceiling + _NOISE:
                return f"{name} above {number_text(ceiling)} %"
        return ""

    def outside(self, floors: Percentages, ceilings: Percentages, added: Points) -> float:
        """Return how many points the node is below floors and above ceilings, summed up, with so many points more."""
        full = {name: points + added.get(name, 0.0) for name, points in self.percents().items()}
        below = sum(max(floor - full[name], 0.0) for name, floor in floors.items() if name in full)
        above = sum(max(full[name] - ceiling, 0.0) for name, ceiling in ceilings.items() if name in full)
        return round(below + above, _DECIMALS)

    def headroom(self, ceilings: Percentages) -> dict[str, int]:
        """Return how much more of each resource would pass no ceiling (see `passed`)."""
        caps = {name: (ceilings.get(name, _WHOLE) + _NOISE) / 100 * self._offered.get(name, 0) for name in self.used}
        return {name: int(caps[name]) - used for name, used in self.used.items()}

    def compare(self, targets: Percentages) -> str:
        """Return what is above its target in words, like `cpu 83 % > 50 %`."""
        return ", ".join(
            compared(name, self.percent(name) or 0.0, ">", targets[name]) for name in self.above(targets).points
        )

    def _share(self, name: str, amount: int) -> float:
        capacity = self._offered.get(name, 0)
        return amount / capacity * 100 if capacity else (inf if amount > 0 else 0.0)


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node is above its targets: points by resource, of those above it only."""

    points: Points

    @property
    def total(self) -> float:
        """The sum over the resources."""
        return sum(self.points.values())

    def left(self, taken: Points) -> float:
        """Return the sum that is left once a pod has taken its usage along; 0 if that cures it."""
        left = 0.0
        for name, over in self.points.items():
            remains = over - taken.get(name, 0.0)
            left += remains if remains > _NOISE else 0.0
        return left

    def beyond(self, taken: Points) -> float:
        """Return how much more than the excess a pod takes along that cures it."""
        return sum(taken.get(name, 0.0) - over for name, over in self.points.items())
