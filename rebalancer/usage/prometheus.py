"""Usage from Prometheus, by queries of our own form: one for each resource, with unit and base declared.

Without a window, the present value counts.  With a window, quantiles count:

1. The window is divided into 30 steps, or fewer if they would be shorter than 15 s; NaN and negative values are gaps.
2. A node needs a present sample, and values for at least half of the steps.
3. `sourceQuantile` gives its usage as a source of pods, `destinationQuantile` its usage as a destination.

Example: a window of 30m has 30 steps of 60 s, so a node needs 15 values (5m: 20 steps of 15 s, 10 values).  A node
that used 1 core in 20 steps and 3 cores in 10 has 1000 millicores at quantile 0.5, and 3000 at quantile 0.95.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import ComingLoad, Course, Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, METRIC_RESOURCE, Resources
from rebalancer.errors import SourceError
from rebalancer.policy.usage import NodeQuery, PodQuery, PrometheusUsage, UsageQuery
from rebalancer.usage.history import AskRange
from rebalancer.usage.promql import Ask, NodeNames, UsageWindow, VectorElement, timestamp
from rebalancer.usage.sample_age import instant, of_nodes, stale, usable

_WHOLE = {"ratio": 1.0, "percent": 100.0}
_MILLI = 1000
#: Contention is in hundredths of a percent.
_HUNDREDTHS = 10_000
_DAY = 86_400
_BEFORE, _AFTER, _STEP = 3600, 7200, 300


Values = Mapping[str, float]


class NodeColumn:
    """The usage of one resource by node, as a source of pods (`usual`) and as a destination (`peaks`), where known.

    Prometheus is asked for:

    1. the time of each present sample, if there is a window or a limit on the age;
    2. the number of values in the window, if there is a window;
    3. the values at `sourceQuantile` and at `destinationQuantile`; without a window the present ones, once.

    Raises SourceError if there is no answer, or one that cannot be used.
    """

    def __init__(
        self, ask: Ask, resource: str, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster
    ) -> None:
        self._ask = ask
        self.resource = resource
        self._query: NodeQuery = wanted.nodes[resource]
        self._names = NodeNames(cluster.snapshot.nodes, self._query.node)
        self._window = UsageWindow.over(wanted.window) if wanted.window else None
        self._now = cluster.now
        self._max_age = max_age
        self.warnings: tuple[str, ...] = ()
        text = self._query.query
        #: When the present sample of each node was taken; None where that is not asked for.
        self._taken = self._values(timestamp(text)) if self._window or max_age is not None else None
        self._counts = self._values(self._window.count(text)) if self._window else {}
        self._present = self._at(wanted.source_quantile)
        self.usual = self._amounts(self._present, cluster.nodes)
        self.peaks = self._amounts(self._at(wanted.destination_quantile), cluster.nodes)

    @property
    def taken(self) -> datetime | None:
        """When the oldest present sample of a node was taken; None where that is not asked for, or there is none."""
        return min(map(instant, (self._taken or {}).values()), default=None)

    def why_not(self, node: Node) -> str:
        """Return why the usage of a node is unknown; empty if it is known."""
        name, resource = node.name, self.resource
        if (name not in self._present and self._window is None) or (
            self._taken is not None and name not in self._taken
        ):
            return f"no sample of {resource}"
        if self._taken is not None:
            reason = stale(self._now - instant(self._taken[name]), self._max_age)
            if reason:
                return f"{resource}: {reason}"
        if self._window is not None and self._counts.get(name, 0) * 2 < self._window.steps:
            return f"{resource}: {self._counts.get(name, 0):g} of {self._window.steps} values in the window"
        if name in self.usual and name in self.peaks:
            return ""
        value = self._present[name]
        return f"{resource}: the node's {self._query.base} is unknown" if usable(value) else f"{resource} is {value:g}"

    def _at(self, quantile: float) -> Values:
        text = self._query.query
        return self._values(text if self._window is None else self._window.quantile(text, quantile))

    def _values(self, query: str) -> Values:
        values, strangers = self._names.values(self._ask(query), query)
        if strangers:
            self.warnings = (f"{self.resource}: {strangers}",)
        return values

    def _amounts(self, values: Values, nodes: Iterable[Node]) -> Mapping[str, int]:
        known = [node for node in nodes if node.name in values]
        found = ((node.name, _amount_of(values[node.name], self.resource, self._query, node)) for node in known)
        return {name: used for name, used in found if used is not None}


Key = tuple[str, str]


def _pod_figures(
    ask: Ask, wanted: PrometheusUsage, cluster: Cluster
) -> tuple[Mapping[Key, Resources] | None, Mapping[Key, str]]:
    """Return the usage of pods, None without queries about them, and the nodes of those whose series name one."""
    if not wanted.pods:
        return None, {}
    window = UsageWindow.over(wanted.window) if wanted.window else None
    usage: dict[Key, dict[str, int]] = {}
    nodes: dict[Key, str] = {}
    for resource, query in wanted.pods.items():
        text = query.query if window is None else window.quantile(query.query, wanted.source_quantile)
        for key, (sample, node) in _picked(query, ask(text), text, cluster).items():
            used = _amount_of(sample.value, resource, query, cluster.node(node or ""))
            if used is None:
                continue
            usage.setdefault(key, {})[resource] = used
            if node and query.node is not None:
                nodes[key] = node
    return usage, nodes


def _picked(
    query: PodQuery, samples: Iterable[VectorElement], text: str, cluster: Cluster
) -> Mapping[Key, tuple[VectorElement, str | None]]:
    """Return each pod's series with its node; of several, as of a pod that moved, that on the present node counts."""
    namespace, name = query.labels.namespace, query.labels.pod
    nodes = NodeNames(cluster.snapshot.nodes, query.node) if query.node else None
    present = {pod.key: pod.node for pod in cluster.snapshot.pods}
    found: dict[Key, tuple[VectorElement, str | None]] = {}
    for sample in samples:
        key = (sample.metric.get(namespace, ""), sample.metric.get(name, ""))
        if not all(key):
            continue  # cgroups that belong to no pod
        node = nodes.of(sample) if nodes else present.get(key)
        if key in found and node == found[key][1]:
            cure = f"aggregate them, for example with sum by ({namespace}, {name}) (...)"
            two = f"two series for pod {'/'.join(key)}: {found[key][0]} and {sample}"
            raise SourceError(f"the query `{text.strip()}` gives {two}; {cure}")
        if key not in found or node == present.get(key):
            found[key] = (sample, node)
    return found


_LABEL = "instance"


def measured_shares(ask: Ask, query: str, cluster: Cluster) -> Measured:
    """Return how full nodes are, in whole percent rounded down; of two series for a node the last one counts.

    That is the descheduler's form: one query, the node's name in the label `instance`, values 0 to 1.  A series that
    breaks it fails the strategy, as in the descheduler; so does NaN, which the descheduler accepts.  Raises SourceError
    if there is no answer, or a series breaks the form.
    """
    shares: dict[str, int] = {}
    for sample in ask(query):
        if _LABEL not in sample.metric:
            raise SourceError(f"the series {sample} has no label {_LABEL}, which should hold the name of its node")
        if not 0 <= sample.value <= 1:  # true for NaN too
            raise SourceError(f"the series {sample} has the value {sample.value:g}, which is not between 0 and 1")
        shares[sample.metric[_LABEL]] = int(sample.value * 100)
    nodes, missing = of_nodes(
        cluster, lambda node: {METRIC_RESOURCE: shares[node.name]} if node.name in shares else "no sample"
    )
    strangers = sorted(name for name in shares if cluster.node(name) is None)
    about = f"{len(strangers)} series are about no node of the cluster, the first has {_LABEL} "
    warnings = (f"{about}{strangers[0]!r}",) if strangers else ()
    return Measured(nodes, nodes, missing=missing, warnings=warnings)


def measured(
    ask: Ask, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster, ask_range: AskRange | None = None
) -> Measured:
    """Return the usage of nodes, and of pods if there are queries for them; of earlier days too, for `coming`.

    An older sample than `max_age` does not count, by `timestamp(query)`; None leaves it to Prometheus.  Raises
    SourceError if there is no answer, or one that cannot be used, like two series for one node.
    """
    columns = [NodeColumn(ask, name, wanted, max_age, cluster) for name in wanted.nodes]
    reasons = {node.name: [why for column in columns if (why := column.why_not(node))] for node in cluster.nodes}
    missing = {name: " and ".join(each) for name, each in reasons.items() if each}
    fresh = [node for node in cluster.nodes if node.name not in missing]
    pods, pod_nodes = _pod_figures(ask, wanted, cluster)
    peaks: Mapping[str, Resources] = {
        node.name: {column.resource: column.peaks[node.name] for column in columns} for node in fresh
    }
    coming = None
    if ask_range and (earlier := wanted.coming):
        courses = {name: _courses(ask_range, name, each, cluster, earlier.days) for name, each in wanted.nodes.items()}
        coming = ComingLoad(earlier.days, courses)
        peaks = _raised(peaks, coming, earlier.quantile)
    return Measured(
        nodes={node.name: {column.resource: column.usual[node.name] for column in columns} for node in fresh},
        peaks=peaks,
        pods=pods,
        pod_nodes=pod_nodes,
        missing=missing,
        window=wanted.window or timedelta(0),
        taken=min((column.taken for column in columns if column.taken), default=None),
        warnings=tuple(dict.fromkeys(text for column in columns for text in column.warnings)),
        coming=coming,
    )


def _courses(
    ask: AskRange, resource: str, query: NodeQuery, cluster: Cluster, days: int
) -> Mapping[str, tuple[Course, ...]]:
    """Return by node what it used on each earlier day for which there are values, yesterday first."""
    known = {node.name: node for node in cluster.nodes}
    names = NodeNames(known.values(), query.node)
    found: dict[str, list[Course]] = {}
    for day in range(1, days + 1):
        here = cluster.now.timestamp() - day * _DAY
        by_node: dict[str, dict[int, int]] = {}
        for series in ask(query.query, here - _BEFORE, here + _AFTER, _STEP).series:
            name = names.of(VectorElement(series.labels, 0.0))
            if name is None:
                continue
            for each in series.values:
                used = _amount_of(each.value, resource, query, known[name])
                if used is not None:
                    by_node.setdefault(name, {})[round(each.time - here)] = used
        for name, course in by_node.items():
            found.setdefault(name, []).append(course)
    return {name: tuple(each) for name, each in found.items()}


def quantile_of(course: Iterable[Course], quantile: float) -> int | None:
    """Return the quantile of what was used from this time of day on, over all days; None without values."""
    values = sorted(used for each in course for ahead, used in each.items() if ahead >= 0)
    return values[min(len(values) - 1, int(quantile * len(values)))] if values else None


def _raised(peaks: Mapping[str, Resources], coming: ComingLoad, quantile: float) -> Mapping[str, Resources]:
    """Return the peaks, with more where nodes used more in the coming hours of earlier days."""

    def later(name: str, node: str) -> int:
        return quantile_of(coming.courses[name].get(node, ()), quantile) or 0

    return {node: {name: max(used, later(name, node)) for name, used in each.items()} for node, each in peaks.items()}


def _amount_of(value: float, resource: str, query: UsageQuery, node: Node | None) -> int | None:
    """Return a value in millicores, bytes or whole units; None if it is not a usable number.

    Example, for CPU and a node with 8 cores of capacity and 6 allocatable:

        ratio 0.5, base capacity         0.5 * 8000       4000 millicores
        percent 50, base allocatable     50 / 100 * 6000  3000 millicores
        cores 1.5                        1.5 * 1000       1500 millicores
    """
    if not usable(value):
        return None
    if query.unit in _WHOLE:
        if query.base == "time":
            return round(value / _WHOLE[query.unit] * _HUNDREDTHS)
        offered = {} if node is None else node.capacity if query.base == "capacity" else node.allocatable
        return round(value / _WHOLE[query.unit] * offered[resource]) if resource in offered else None
    return round(value * _MILLI) if resource == CPU else round(value)
