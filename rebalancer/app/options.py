"""What a run is asked to do, and what it comes to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to do; names as on the command line."""

    policy: str
    kubeconfig: str | None = None
    context: str | None = None
    dry_run: bool = False
    snapshot: str | None = None
    now: str | None = None
    strict: bool = False
    deadline: float = 300.0
    fail_on_error: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: its report, and the exit code that says it in a number."""

    report: dict[str, Any]
    exit_code: int


#: Asked before the first eviction of a live run, with the description of the cluster; raises to decline.
Confirm = Callable[[dict[str, str | None], bool], None]
