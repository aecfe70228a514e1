"""Which containers were OOM killed or throttled, asked of Prometheus day by day; what the server lacks is not known.

Kills come from kube-state-metrics, or from cAdvisor's counter.  Throttling is the share of CPU periods of an hour in
which a container had used up its limit; hours below a quarter do not count, as in the alert CPUThrottlingHigh of
kubernetes-mixin.  The result has the number of days with such an hour, and the mean of the worst hours of these days.
"""

from dataclasses import dataclass, field
from statistics import fmean

from rebalancer.errors import SourceError
from rebalancer.usage.history import AskRange, RangeSeries, Span

_BY = "(namespace, pod, container)"
KILLS_QUERY = (
    f'max by {_BY} (max_over_time(kube_pod_container_status_last_terminated_reason{{reason="OOMKilled"}}[1h])'
    ' or increase(container_oom_events_total{container!=""}[1h])) > 0'
)
THROTTLING_QUERY = (
    f'sum by {_BY} (increase(container_cpu_cfs_throttled_periods_total{{container!=""}}[1h]))'
    f' / sum by {_BY} (increase(container_cpu_cfs_periods_total{{container!=""}}[1h])) >= 0.25'
)
_HOUR, _DAY = 3600, 86_400

#: Namespace, pod and container.
ContainerName = tuple[str, str, str]


@dataclass(slots=True)
class Trouble:
    """What befell containers.

    Attributes:
        killed: those that were OOM killed.
        throttled: of those that were throttled, by day, the share of periods in the worst hour.
        missing: what could not be asked, and why.
    """

    killed: set[ContainerName] = field(default_factory=set)
    throttled: dict[ContainerName, dict[int, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def throttling(self, names: set[ContainerName]) -> tuple[float, int]:
        """Return the mean of the days' worst hours of some containers together, and the number of these days."""
        days: dict[int, float] = {}
        for name in names & self.throttled.keys():
            for day, share in self.throttled[name].items():
                days[day] = max(share, days.get(day, 0.0))
        return (fmean(days.values()), len(days)) if days else (0.0, 0)


def read_trouble(ask: AskRange, span: Span) -> Trouble:
    """Return what befell containers within a time; without an answer, what is missing."""
    found = Trouble()
    try:
        for begin in range(round(span.start), round(span.end), _DAY):
            end = min(begin + _DAY, span.end)
            for series in ask(KILLS_QUERY, min(begin + _HOUR, end), end, _HOUR).series:
                found.killed.add(_name(series))
            for series in ask(THROTTLING_QUERY, min(begin + _HOUR, end), end, _HOUR).series:
                found.throttled.setdefault(_name(series), {})[begin] = max(each.value for each in series.values)
    except SourceError as error:
        found.missing.append(f"OOM kills and throttling are not known in full: {error}")
    return found


def _name(series: RangeSeries) -> ContainerName:
    labels = series.labels
    return labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", "")
