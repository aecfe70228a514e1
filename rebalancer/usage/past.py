"""What became of pods and containers in the past, asked of Prometheus day by day; what the server lacks is not known.

Owners, also of pods that are gone: `kube_pod_owner` of kube-state-metrics says, for example, that web-5d8f7b9c64-x2x7k
was of the ReplicaSet web-5d8f7b9c64, and `kube_replicaset_owner` that this one was of the Deployment web.

Starts come from cAdvisor, which tells when a container began, and so when it was restarted.

Kills come from kube-state-metrics, or from cAdvisor's counter.  Throttling is the share of CPU periods of an hour in
which a container had used up its limit; hours below a quarter do not count, as in the alert CPUThrottlingHigh of
kubernetes-mixin.  The result has the number of days with such an hour, and the mean of the worst hours of these days.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import fmean

from rebalancer.errors import SourceError
from rebalancer.recommendation.samples import ContainerOfPod
from rebalancer.usage.history import AskRange, RangeSeries, Span

_OWNER = "owner_kind, owner_name"
PODS_QUERY = f'max by (namespace, pod, {_OWNER}) (max_over_time(kube_pod_owner{{owner_name!="<none>"}}[6h]))'
REPLICA_SETS_QUERY = (
    f'max by (namespace, replicaset, {_OWNER}) (max_over_time(kube_replicaset_owner{{owner_name!="<none>"}}[6h]))'
)
#: The times at which containers began that did so in the hour before.
STARTS_QUERY = (
    'max by (namespace, pod, container) (container_start_time_seconds{container!="",container!="POD"})'
    " > (time() - 3600)"
)
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
_OWNERS_STEP = 6 * _HOUR

#: By namespace and name, the kind and the name of the owner.
Owners = dict[tuple[str, str], tuple[str, str]]


def read_owners(ask: AskRange, span: Span) -> tuple[Owners, list[str]]:
    """Return the owners of pods, and what is missing; in the place of a ReplicaSet its Deployment, if that is known."""
    pods: Owners = {}
    replica_sets: Owners = {}
    missing = []
    try:
        for query, _, series in _day_by_day(ask, span, _OWNERS_STEP, PODS_QUERY, REPLICA_SETS_QUERY):
            label, into = ("pod", pods) if query == PODS_QUERY else ("replicaset", replica_sets)
            labels = series.labels
            found = [labels.get(name, "") for name in ("namespace", label, "owner_kind", "owner_name")]
            if all(found):
                into[found[0], found[1]] = found[2], found[3]
    except SourceError as error:
        missing.append(f"owners of pods are not known in full, and told by names: {error}")
    return {
        (namespace, pod): replica_sets.get((namespace, name), (kind, name)) if kind == "ReplicaSet" else (kind, name)
        for (namespace, pod), (kind, name) in pods.items()
    }, missing


def read_starts(ask: AskRange, span: Span) -> tuple[dict[ContainerOfPod, set[int]], list[str]]:
    """Return when containers began, in seconds since 1970, the last within each hour, and what is missing."""
    starts: dict[ContainerOfPod, set[int]] = {}
    try:
        for _, _, series in _day_by_day(ask, span, _HOUR, STARTS_QUERY):
            began = (round(each.value) for each in series.values if span.start < each.value <= span.end)
            starts.setdefault(_name(series), set()).update(began)
    except SourceError as error:
        return starts, [f"restarts of containers are not known in full: {error}"]
    return starts, []


@dataclass(slots=True)
class Trouble:
    """What befell containers: OOM kills, by day the worst hour's share of throttled periods, and what is missing."""

    killed: set[ContainerOfPod] = field(default_factory=set)
    throttled: dict[ContainerOfPod, dict[int, float]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def throttling(self, names: set[ContainerOfPod]) -> tuple[float, int]:
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
        for query, day, series in _day_by_day(ask, span, _HOUR, KILLS_QUERY, THROTTLING_QUERY):
            if query == KILLS_QUERY:
                found.killed.add(_name(series))
            else:
                worst = max((each.value for each in series.values), default=0.0)
                found.throttled.setdefault(_name(series), {})[day] = min(1.0, worst)  # +Inf where no period is counted
    except SourceError as error:
        found.missing.append(f"OOM kills and throttling are not known in full: {error}")
    return found


def _day_by_day(ask: AskRange, span: Span, step: int, *queries: str) -> Iterator[tuple[str, int, RangeSeries]]:
    """Yield each series of each query, with its query and the beginning of its day, in seconds since 1970."""
    for begin in range(span.start, span.end, _DAY):
        end = min(begin + _DAY, span.end)
        for query in queries:
            for series in ask(query, min(begin + step, end), end, step).series:
                yield query, begin, series


def _name(series: RangeSeries) -> ContainerOfPod:
    labels = series.labels
    return ContainerOfPod(*(labels.get(each, "") for each in ContainerOfPod._fields))
