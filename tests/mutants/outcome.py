"""How long tests may take, and how a run of them ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """Seconds after which tests count as failed: many a change makes an endless loop.

    Attributes:
        test: of one test, by the clock.
        work: of all of them, of processor time; that does not depend on what else the machine does.
    """

    test: float
    work: float


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended.

    Attributes:
        failure: the first one; empty if they pass.
        seconds: the processor time it took.
        lines: the lines of each module that ran, if that was asked for.
        processes: whether it started Python as another process, whose lines are not known.
    """

    failure: str
    seconds: float
    lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    processes: bool = False
