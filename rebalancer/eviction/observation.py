"""What a strategy looked at, in figures; the report puts them into words.

A reader of a plan without evictions wants to know what was looked at, and what was missing.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

OVERUTILIZED = "overutilized"
UNDERUTILIZED = "underutilized"
APPROPRIATE = "appropriately utilized"

#: Why a strategy that moves pods between nodes could do nothing.
NONE_OVER, NONE_UNDER = "NoneOver", "NoneUnder"
TOO_FEW_UNDER, NONE_RECEIVES = "TooFewUnder", "NoneReceives"

Percentages = Mapping[str, float]
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WeighedNode:
    """How full a node is before the strategy, and after it with the pods it expects, in percent; and its states."""

    name: str
    before: Percentages
    after: Percentages
    state: str
    state_after: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What a strategy looked at; observations can be added up."""

    counts: Mapping[str, int] = field(default_factory=lambda: _NONE)  # how many of what, in the order of the report
    figures: Mapping[str, float] = field(default_factory=lambda: _NONE)  # limits of counting, like an age in seconds
    nodes: tuple[WeighedNode, ...] = ()  # the nodes whose utilization was compared
    thresholds: Percentages = field(default_factory=lambda: _NONE)  # at or below which a node is underutilized
    targets: Percentages = field(default_factory=lambda: _NONE)  # percent by resource, above which it is overutilized
    obstacle: str = ""  # why nothing could be done; empty where something could

    def __add__(self, other: "Observation") -> "Observation":
        counts = Counter(self.counts)
        counts.update(other.counts)
        return Observation(
            dict(counts),
            {**self.figures, **other.figures},
            self.nodes + other.nodes,
            {**self.thresholds, **other.thresholds},
            {**self.targets, **other.targets},
            other.obstacle or self.obstacle,
        )
