"""Waiting on conditions: polled at short intervals, up to a deadline, failing with what was awaited."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_INTERVAL = 0.05
#: Seconds until a wait is given up: spent only when a test fails, and the machine may be busy.
TIMEOUT = 300.0


class DeadlineError(AssertionError):
    """What was awaited did not come about in time."""


class ClusterDeadlineError(DeadlineError):
    """Kubernetes' own components did not get there in time; this says nothing of the program."""


def wait_for(
    condition: Callable[[], T | None],
    what: str,
    deadline: float = TIMEOUT,
    interval: float = POLL_INTERVAL,
    error: type[DeadlineError] = DeadlineError,
) -> T:
    """Call ``condition`` until it returns something true, and return that; `what` is awaited, for the message."""
    end = time.monotonic() + deadline
    while not (seen := condition()):
        if time.monotonic() > end:
            raise error(f"{what}: not within {deadline:g} s; last seen: {seen!r}")
        time.sleep(interval)
    return seen
