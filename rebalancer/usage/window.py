"""Queries over a window, as subqueries of PromQL.

Example: the median of the query `node_load` over a window of 30m is sent as
`quantile_over_time(0.5, ((node_load) >= 0)[1800s:60s])`.
"""

from dataclasses import dataclass
from datetime import timedelta

from rebalancer.policy.usage import PrometheusUsage

#: A window has this many steps, unless they would be shorter than a usual scrape interval.
_STEPS = 30
_SHORTEST_STEP = 15


@dataclass(frozen=True, slots=True)
class UsageWindow:
    """A period that ends now, divided into steps; a step whose value is NaN or too low is left out.

    Attributes:
        seconds: its length.
        step: seconds from one evaluation of a query to the next.
        least: the lowest value that counts, in PromQL.
    """

    seconds: int
    step: int
    least: str = "0"

    @classmethod
    def of(cls, wanted: PrometheusUsage) -> "UsageWindow | None":
        """Return the window of a policy; None without one."""
        return None if wanted.window is None else cls.over(wanted.window)

    @classmethod
    def over(cls, time: timedelta, least: str = "0") -> "UsageWindow":
        """Return the window of this length."""
        seconds = round(time / timedelta(seconds=1))
        return cls(seconds, max(_SHORTEST_STEP, seconds // _STEPS), least)

    @property
    def steps(self) -> int:
        """How often a query is evaluated in the window, plus or minus one."""
        return self.seconds // self.step

    def quantile(self, query: str, quantile: float) -> str:
        """Return the query for a quantile of each series."""
        return f"quantile_over_time({quantile:g}, {self._range(query)})"

    def count(self, query: str) -> str:
        """Return the query for the number of values of each series."""
        return f"count_over_time({self._range(query)})"

    def _range(self, query: str) -> str:
        return f"({alone(query)} >= {self.least})[{self.seconds}s:{self.step}s]"


def alone(query: str) -> str:
    """Return a query in parentheses; if it has a comment, the closing parenthesis stands on a line of its own."""
    text = query.strip()
    return f"({text}\n)" if "#" in text else f"({text})"


def timestamp(query: str) -> str:
    """Return the query for the times of the present samples; Prometheus knows these only for plain series."""
    return f"timestamp({alone(query)})"
