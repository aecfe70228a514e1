"""What is known of the scheduler: its configuration, added to the snapshot of a cluster."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import UsageError
from rebalancer.policy.scheduler_configuration import load_scheduler_configuration
from rebalancer.run.policies import settings_text
from rebalancer.scheduling.simulator.configuration import Configuration, read_configuration


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The scheduler as the command line describes it.

    Attributes:
        configuration: the document of a KubeSchedulerConfiguration; None for the defaults.
        warnings: what the reader of the report should know about it.
    """

    configuration: Mapping[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    def names(self) -> frozenset[str]:
        """Return the values of `schedulerName` by which pods may ask for it."""
        configuration = read_configuration(self.configuration) if self.configuration else Configuration()
        return frozenset(each.scheduler_name for each in configuration.profiles)


DEFAULT = Scheduler()


def read_scheduler(path: str | None) -> Scheduler:
    """Read the configuration from a file, `-` for standard input; None for the defaults.

    Raises:
        SchedulerConfigurationError: it has problems.
        UsageError: the file cannot be read.
    """
    if path is None:
        return DEFAULT
    try:
        text = settings_text(path, "scheduler configuration")
    except FileNotFoundError:
        raise UsageError(f"there is no file {path} with the scheduler's configuration") from None
    loaded = load_scheduler_configuration(text, source=path)
    warnings = tuple(f"scheduler configuration {path}: {problem}" for problem in loaded.warnings)
    return Scheduler(loaded.document, warnings)


def beside(snapshot: Snapshot, scheduler: Scheduler) -> Snapshot:
    """Return a snapshot with the scheduler's configuration, and with a warning where pods name another scheduler."""
    warnings = (*snapshot.warnings, *scheduler.warnings, *_strangers(snapshot, scheduler.names()))
    return msgspec.structs.replace(snapshot, scheduler_configuration=scheduler.configuration, warnings=warnings)


def _strangers(snapshot: Snapshot, known: frozenset[str]) -> tuple[str, ...]:
    """Return one warning about all scheduler names that pods ask for and no profile has."""
    named = Counter(pod.spec.placement.scheduler for pod in snapshot.pods if pod.active)
    strange = sorted(named.keys() - known)
    if not strange:
        return ()
    told = ", ".join(f"{name} (pods: {named[name]})" for name in strange)
    return (f"where the scheduler puts pods is unknown for {told}: --scheduler-config describes other schedulers",)
