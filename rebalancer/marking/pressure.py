"""What marking goes by and what it shows: readings of rules, and the pressure that nodes are under."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PressureReading:
    """What a rule measures on one node.

    Attributes:
        value: at present.
        lowest: over the time that the rule calls `for`; the present value without it.
        highest: the same.
    """

    value: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, value: float) -> "PressureReading":
        """Return the reading of a rule that goes by the present value alone."""
        return cls(value, value, value)


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What is known of one rule.

    Attributes:
        readings: by node; a node without a sample is absent.
        problem: why nothing is known, as when the source does not answer; empty if something is.
        source: which was asked, where there is a problem.
        missing: why a node has no reading, by node, where the source says so.
        warnings: what the reader of a report should know.
    """

    readings: Mapping[str, PressureReading] = field(default_factory=dict)
    problem: str = ""
    source: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pressure:
    """One rule that marks one node.

    Attributes:
        rule: its name.
        since: when it began to mark the node.
        until: when the mark expires, unless it is renewed.
        value: what the rule measured when this was written.
    """

    rule: str
    since: datetime
    until: datetime
    value: float


#: The rules that mark each node, in the order of the file; a node without one is absent.
Marks = Mapping[str, tuple[Pressure, ...]]
