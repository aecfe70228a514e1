"""What probes are told: whether the program is alive, and whether it does its work.

Written by the cycles' thread and read by the server's; each field is replaced as a whole, so no lock is needed.
"""

from collections.abc import Callable

from rebalancer.clock import boottime
from rebalancer.telemetry.checks import Checks

#: How long a cycle may take beyond its deadline: the last request, its retries, Events.
_SLACK_SECONDS = 120.0
#: A leader is not ready if its last cycle ended longer ago than the present pause plus so many intervals.
_INTERVALS = 3


class Health:
    """The state of a process.

    Args:
        deadline: seconds after which a cycle evicts nothing more.
        interval: seconds from start to start of cycles; 0 for a single one.
        clock: seconds, like `boottime`.
    """

    def __init__(self, deadline: float, interval: float, clock: Callable[[], float] = boottime) -> None:
        self._longest_cycle = deadline + _SLACK_SECONDS
        self._interval = interval
        self._clock = clock
        self._cycle_began: float | None = None
        self._cycle_ended = clock()
        self._pause = interval
        self._follows = False
        self._policy_problem = ""
        self._api_problem = "the API server was not asked yet"
        self._source_problem: str | None = None

    def cycle_began(self) -> None:
        """Record that a cycle begins."""
        self._cycle_began = self._clock()

    def cycle_ended(self, pause: float) -> None:
        """Record that a cycle is over, good or failed, and the longest time until the next one starts, in seconds."""
        self._pause = pause
        self._cycle_ended = self._clock()
        self._cycle_began = None

    def follow(self) -> None:
        """Record that another process leads."""
        self._follows = True

    def lead(self) -> None:
        """Record that this process leads from now on."""
        if self._follows:
            self._cycle_ended = self._clock()
        self._follows = False

    def policy_read(self, problem: str) -> None:
        """Record what is wrong with the policy; empty when nothing is.  The page only says that something is."""
        self._policy_problem = "it cannot be used (the log says why)" if problem else ""

    def api_asked(self, problem: str) -> None:
        """Record why the API server cannot be reached; empty if it was reached."""
        self._api_problem = problem

    def watch_sources(self) -> None:
        """From now on, readiness also says whether sources of usage answer."""
        self._source_problem = "no source was asked yet"

    def sources_asked(self, problem: str) -> None:
        """Record what sources of usage do not say; empty if they say all.  The page only says that something is."""
        self._source_problem = "not all is known that is needed (the log says what)" if problem else ""

    def alive(self) -> Checks:
        """Return the checks of `/healthz`: they fail only where a restart helps."""
        began = self._cycle_began
        seconds = self._clock() - began if began is not None else 0.0
        stuck = seconds > self._longest_cycle
        return {"ping": "", "cycle": f"it began {seconds:.0f} s ago and has not ended" if stuck else ""}

    def ready(self) -> Checks:
        """Return the checks of `/readyz`: whether the program does its work."""
        checks = {"policy": self._policy_problem, "api": self._api_problem, "cycles": self._overdue()}
        if self._source_problem is None:
            return checks
        return {**checks, "sources": "" if self._follows else self._source_problem}

    def _overdue(self) -> str:
        if not self._interval or self._follows:
            return ""
        age = self._clock() - self._cycle_ended
        if age <= self._pause + _INTERVALS * self._interval:
            return ""
        return f"the last one ended {age:.0f} s ago, and one is due every {self._interval:g} s"
