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
    """How full a node was when the strategy began, in percent by resource, and in which of the three states.

    And the same when it ended, with the pods that are expected to come.
    """

    name: str
    before: Percentages
    after: Percentages
    state: str
    state_after: str


@dataclass(frozen=True, slots=True)
class Observation:
    """What a strategy looked at; observations can be added up.

    Attributes:
        counts: how many of what, in the order of the report; `pods` are the pods that were considered.
        figures: the limits by which it was counted, like an age in seconds.
        nodes: the nodes whose utilization was compared.
        thresholds: percent by resource, at or below which a node is underutilized in this run.
        targets: percent by resource, above which it is overutilized.
        obstacle: why nothing could be done; empty where something could.
    """

    counts: Mapping[str, int] = field(default_factory=lambda: _NONE)
    figures: Mapping[str, float] = field(default_factory=lambda: _NONE)
    nodes: tuple[WeighedNode, ...] = ()
    thresholds: Percentages = field(default_factory=lambda: _NONE)
    targets: Percentages = field(default_factory=lambda: _NONE)
    obstacle: str = ""

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
