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
from math import nan
from typing import NamedTuple

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


class _OfResource(NamedTuple):
    """The usage of one resource."""

    used: Mapping[str, tuple[int, int]]  # by node where it is known: as a source of pods, and as a destination
    missing: Mapping[str, str]  # why it is not known of the others
    taken: datetime | None  # of the oldest present sample; None where that is not asked for, or there is none
    warnings: Iterable[str]


def _of_resource(
    ask: Ask, resource: str, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster
) -> _OfResource:
    """Return the usage of one resource; raises SourceError if there is no answer, or one that cannot be used.

    Prometheus is asked for:

    1. the time of each present sample, if there is a window or a limit on the age;
    2. the number of values in the window, if there is a window;
    3. the values at `sourceQuantile` and at `destinationQuantile`; without a window the present ones, once.
    """
    query, strange = wanted.nodes[resource], dict[str, str]()
    names, text = NodeNames(cluster.snapshot.nodes, query.node), query.query
    window = UsageWindow.over(wanted.window) if wanted.window else None

    def values(asked: str) -> Mapping[str, float]:
        found, strangers = names.values(ask(asked), asked)
        strange.update({resource: f"{resource}: {strangers}"} if strangers else {})
        return found

    taken = values(timestamp(text)) if window or max_age is not None else None
    counts = values(window.count(text)) if window else {}
    quantiles = (wanted.source_quantile, wanted.destination_quantile)
    usual, peaks = (values(window.quantile(text, each) if window else text) for each in quantiles)

    def used(node: Node) -> tuple[int, int] | str:
        name = node.name
        if name not in (usual if taken is None else taken) or (window is None and name not in usual):
            return f"no sample of {resource}"
        if taken is not None and (reason := stale(cluster.now - instant(taken[name]), max_age)):
            return f"{resource}: {reason}"
        if window is not None and counts.get(name, 0) * 2 < window.steps:
            return f"{resource}: {counts.get(name, 0):g} of {window.steps} values in the window"
        source, destination = (_amount_of(each.get(name, nan), resource, query, node) for each in (usual, peaks))
        if source is not None and destination is not None:
            return source, destination
        value = usual.get(name, nan)
        return f"{resource}: the node's {query.base} is unknown" if usable(value) else f"{resource} is {value:g}"

    return _OfResource(
        *of_nodes(cluster, used), min(map(instant, (taken or {}).values()), default=None), strange.values()
    )


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
    nodes, label = (NodeNames(cluster.snapshot.nodes, query.node), query.node.label) if query.node else (None, "")
    present = {pod.key: pod.node for pod in cluster.snapshot.pods}
    found: dict[Key, tuple[VectorElement, str | None]] = {}
    for sample in samples:
        key = (sample.metric.get(namespace, ""), sample.metric.get(name, ""))
        if not all(key):
            continue  # cgroups that belong to no pod
        node = nodes.of(sample) if nodes else present.get(key)
        known = found.get(key)
        # Without a node of the cluster, the label tells two apart: both may be about nodes that have left.
        if known and node == known[1] and (node or sample.metric.get(label) == known[0].metric.get(label)):
            cure = f"aggregate them, for example with sum by ({namespace}, {name}) (...)"
            two = f"two series for pod {'/'.join(key)}: {known[0]} and {sample}"
            raise SourceError(f"the query `{text.strip()}` gives {two}; {cure}")
        if known is None or node == present.get(key):
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

    A node that is missing may have figures of some resources: requests stand in for the others alone, if they do.
    An older sample than `max_age` does not count, by `timestamp(query)`; None leaves it to Prometheus.  Raises
    SourceError if there is no answer, or one that cannot be used, like two series for one node.
    """
    columns = {name: _of_resource(ask, name, wanted, max_age, cluster) for name in wanted.nodes}
    whys = {node.name: [each.missing.get(node.name) for each in columns.values()] for node in cluster.nodes}
    missing = {name: " and ".join(filter(None, each)) for name, each in whys.items() if any(each)}
    nodes, peaks = (
        {
            name: {resource: each.used[name][place] for resource, each in columns.items() if name in each.used}
            for name in whys
        }
        for place in (0, 1)
    )
    pods, pod_nodes = _pod_figures(ask, wanted, cluster)
    coming = None
    if ask_range and (earlier := wanted.coming):
        courses = {name: _courses(ask_range, name, each, cluster, earlier.days) for name, each in wanted.nodes.items()}
        coming = ComingLoad(earlier.days, courses)
        peaks = _raised(peaks, coming, earlier.quantile)
    return Measured(
        nodes=nodes,
        peaks=peaks,
        pods=pods,
        pod_nodes=pod_nodes,
        missing=missing,
        window=wanted.window or timedelta(0),
        taken=min((each.taken for each in columns.values() if each.taken), default=None),
        warnings=tuple(dict.fromkeys(text for each in columns.values() for text in each.warnings)),
        coming=coming,
    )


def _courses(
    ask: AskRange, resource: str, query: NodeQuery, cluster: Cluster, days: int
) -> Mapping[str, tuple[Course, ...]]:
    """Return by node what it used on each earlier day, yesterday first; nothing for a day without values."""
    known = {node.name: node for node in cluster.nodes}
    names = NodeNames(known.values(), query.node)
    found: dict[str, list[Course]] = {name: [] for name in known}
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
        for name, courses in found.items():
            courses.append(by_node.get(name, {}))
    return {name: tuple(each) for name, each in found.items()}


def quantile_of(course: Iterable[Course], quantile: float) -> int | None:
    """Return the quantile of what was used from this time of day on, over all days; None without values."""
    values = sorted(used for each in course for ahead, used in each.items() if ahead >= 0)
    return values[min(len(values) - 1, int(quantile * len(values)))] if values else None


def _raised(peaks: Mapping[str, Resources], coming: ComingLoad, quantile: float) -> dict[str, dict[str, int]]:
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
