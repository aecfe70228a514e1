"""Every request of a cycle with its verdict and why; of a dry run this is the plan."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from rebalancer.cluster.pod import Pod
from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.observation import Observation
from rebalancer.eviction.steering import ActualPlacement, Destination, Held, Wave
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown, Verdict


class Entry(msgspec.Struct, frozen=True):
    """One pod that a strategy asked for, why, and with what it measured; no destination where it was not looked up."""

    profile: str
    strategy: str
    pod: Pod
    because: Cause
    verdict: Verdict
    destination: Destination | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """What a person should know beside the entries, and who says it, as profile/strategy; empty for the engine."""

    cause: Cause
    who: str = ""


@dataclass(frozen=True, slots=True)
class SteeredWaves:
    """A wave that was begun, and what became of its pods that went, in order; nothing if that was not waited for."""

    wave: Wave
    placements: tuple[ActualPlacement, ...] = ()


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """How one strategy of one profile went; `seconds` is the only part that differs between equal runs."""

    profile: str
    strategy: str
    evicted: int
    unknown: int
    refused: int
    seconds: float
    error: str | None = None
    observed: Observation = field(default_factory=Observation)
    namespaces: tuple[str, ...] = ()  # those that its arguments include; empty for all
    waves: tuple[SteeredWaves, ...] = ()


@dataclass(slots=True)
class Ledger:
    """What was asked and answered, in order."""

    evictions: list[Entry] = field(default_factory=list)
    unknown: list[Entry] = field(default_factory=list)  # may have gone; limits, PDBs and owners' shares count them
    failures: list[Entry] = field(default_factory=list)
    runs: list[StrategyRun] = field(default_factory=list)
    skipped: str | None = None  # why no strategy ran, or None
    stopped: str | None = None  # why the cycle ended early, or None
    rested: bool = False  # whether it was to end early, by a pause, a window or the breaker: that is not a failure
    observe: Callable[[Entry], None] = lambda _: None  # called with every entry as it is recorded
    warnings: list[Notice] = field(default_factory=list)  # what a reader should know beside the entries, each once
    limits: Limits = field(default_factory=Limits)  # the most evictions of the cycle
    held: list[Held] = field(default_factory=list)  # the nodes that were emptied and are kept empty, in order
    observed: Observation = field(default_factory=Observation)  # what the strategy that runs has looked at
    waves: list[SteeredWaves] = field(default_factory=list)  # those that it has made, in order
    _refusals: dict[tuple[int, tuple[str, str]], Entry] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)  # their texts: a cause has no hash, and one pod may cause thousands

    @property
    def refusals(self) -> list[Entry]:
        """One entry for each pod that a strategy asked for and did not get, in order."""
        return list(self._refusals.values())

    def record(self, entry: Entry) -> None:
        """Record a verdict.  A pod refused twice to one strategy counts once, with the first cause."""
        if isinstance(entry.verdict, Refused) and entry.verdict.cause.code is Code.NOT_PLANNED:
            return  # all pods but those of the plan that is applied
        self.observe(entry)
        key = (len(self.runs), entry.pod.key)
        match entry.verdict:
            case Granted():
                self.evictions.append(entry)
                self._refusals.pop(key, None)
            case Refused():
                self._refusals.setdefault(key, entry)
            case Unknown():
                self.unknown.append(entry)
                self._refusals.pop(key, None)
            case Failed():
                self.failures.append(entry)

    def warn(self, cause: Cause, who: str = "") -> None:
        """Record a warning unless it is there already."""
        notice = Notice(cause, who)
        if (said := repr(notice)) not in self._warned:
            self._warned.add(said)
            self.warnings.append(notice)

    def close_run(
        self, profile: str, strategy: str, seconds: float, error: str | None, namespaces: tuple[str, ...] = ()
    ) -> None:
        """End the strategy whose requests were recorded since the last call."""
        number = len(self.runs)
        evicted = len(self.evictions) - sum(run.evicted for run in self.runs)
        unknown = len(self.unknown) - sum(run.unknown for run in self.runs)
        refused = sum(1 for run, _ in self._refusals if run == number)
        observed, self.observed = self.observed, Observation()
        waves, self.waves = tuple(self.waves), []
        self.runs.append(
            StrategyRun(profile, strategy, evicted, unknown, refused, seconds, error, observed, namespaces, waves)
        )
