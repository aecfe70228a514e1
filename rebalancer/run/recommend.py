"""Recommends requests, and what kubelets should keep, from what was measured and a cluster file; changes nothing."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import ceil, inf
from threading import Event
from zoneinfo import ZoneInfo

from rebalancer.cluster.resources import CPU, MEMORY, Resources, add
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SourceError, UsageError
from rebalancer.policy.document import read_document
from rebalancer.policy.findings import Findings
from rebalancer.policy.usage import Prometheus, SecretReference
from rebalancer.policy.validation import read
from rebalancer.recommendation.findings import Recommendations, heavy_neighbours, pod_usage
from rebalancer.recommendation.findings import what_if as foretell
from rebalancer.recommendation.rules import Amounts, Reservation, Settings, reservations, rules
from rebalancer.recommendation.samples import (
    ContainerOfPod,
    MeasuredContainers,
    OfPod,
    Samples,
    Windows,
    day_picture,
    found_peaks,
    hourly_totals,
    parse_windows,
    spans_of,
)
from rebalancer.recommendation.samples import parse_days as days_of_the_week
from rebalancer.recommendation.workloads import (
    WHOLE_POD,
    ContainerCircumstances,
    Enough,
    History,
    Recommendation,
    Workload,
    recommend,
    workload_by_name,
)
from rebalancer.report.layout import count
from rebalancer.run.options import HistoryOptions
from rebalancer.run.policies import parse_sources, policy_text, settings_text
from rebalancer.run.progress import Progress, Stage
from rebalancer.run.recommended_cluster import KnownCluster, PodName, read_known_cluster
from rebalancer.run.sample_folder import read_folder
from rebalancer.run.snapshot_file import read_snapshot_file
from rebalancer.run.work import beside, read_scheduler
from rebalancer.usage.history import AskRange, HistoryQueries, Span, read_history
from rebalancer.usage.past import Trouble, read_owners, read_starts, read_trouble
from rebalancer.usage.promql import PromQL
from rebalancer.usage.session import credentials

#: Queries that a Prometheus is asked at the same time; of its own 20 others need some too.
_AT_ONCE = 3
_NAMED = 3
_HOUR = 3600
_NO_SCALERS = (
    "--snapshot has no HorizontalPodAutoscalers: leave the requests alone by which one scales, or give it a file of "
    "`rebalancer snapshot`, which has them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """What was asked for; `peak` is None where the peaks are to be found, `warmup` is in seconds."""

    samples: str | None
    history: HistoryOptions
    snapshot: str | None
    namespace: str
    peak: str | None
    days: str
    timezone: ZoneInfo
    rule: str
    settings: Settings
    core: frozenset[str]
    enough: Enough
    warmup: float
    what_if: bool
    scheduler_config: str | None


@dataclass(frozen=True, slots=True)
class _Past:
    """What was measured, and what is missing of it; Prometheus also tells of trouble, owners, and late starts."""

    measured: MeasuredContainers
    missing: Sequence[str]
    trouble: Trouble = field(default_factory=Trouble)
    owners: Mapping[PodName, Workload] = field(default_factory=dict)
    starts: Mapping[ContainerOfPod, set[int]] = field(default_factory=dict)


def recommendations(options: RecommendOptions, progress: Progress) -> tuple[Recommendations, list[str]]:
    """Return what is recommended for each container, by namespace and name in order, and remarks for the reader."""
    offered = rules()
    if options.rule not in offered:
        raise UsageError(f"--rule {options.rule} is not a rule; there are {', '.join(offered)}")
    rule = offered[options.rule]()
    span = span_of(options.history, options.samples)
    past = _past(options, span, progress)
    known = read_known_cluster(options.snapshot) if options.snapshot else None
    windows, about = _windows(past.measured, options)
    histories, unmatched = _histories(past, known, windows, options)
    warnings = [rule.warning] if rule.warning else []
    remarks = [*past.missing, *past.trouble.missing, *about, *warnings]
    if unmatched:
        names = [f"{namespace}/{pod}" for namespace, pod in sorted(unmatched)]
        told = f"{count(unmatched.total(), 'sample')} of {count(len(unmatched), 'pod')}"
        more = ", ..." if len(names) > _NAMED else ""
        remarks.append(f"{told} without a workload in the cluster: {', '.join(names[:_NAMED])}{more}")
    found = [
        recommend(each, rule, options.settings, options.enough, core=not options.core.isdisjoint(_traits(each, known)))
        for each in histories
    ]
    absent = options.core - {name for each in histories for name in _traits(each, known)}
    remarks += [f"--core {name} selects no workload that was measured" for name in sorted(absent)]
    if known is None:
        return Recommendations(found), remarks
    remarks += known.left_out
    if "HorizontalPodAutoscaler" not in known.seen:
        remarks.append(_NO_SCALERS)
    snapshot = beside(known.checked_snapshot(), read_scheduler(options.scheduler_config))
    remarks += snapshot.warnings if options.what_if else ()
    return _in_cluster(known, snapshot, found, progress if options.what_if else None), remarks


def _in_cluster(
    known: KnownCluster, snapshot: Snapshot, found: list[Recommendation], foretelling: Progress | None
) -> Recommendations:
    """Add what the cluster file tells: the quality of service, and what would be if the requests were others."""
    changes: dict[Workload, dict[str, Amounts]] = {}
    for each in found:
        if each.change:
            changes.setdefault(each.history.workload, {})[each.history.container] = each.change
    measured = pod_usage([each.history for each in found], known.pods)
    specs = known.specs_with(changes)
    owned = [pod for pod in snapshot.pods if pod.key in known.pods]
    qos = {known.pods[pod.key]: (pod.spec.qos, specs.get(pod.key, pod.spec).qos) for pod in owned}
    if foretelling and not snapshot.nodes:
        raise UsageError("--what-if needs nodes in --snapshot: `rebalancer snapshot` writes all that it needs")
    usage = {(each.namespace, each.name): each.usage for each in snapshot.pod_metrics or ()} | measured
    foretold = None
    if foretelling:

        def tell(done: int, of: int) -> None:
            foretelling.tell(Stage("placing pods anew", done, of))

        with foretelling.shown():
            foretold = foretell(snapshot, specs, usage, tell)
    return Recommendations(found, foretold, heavy_neighbours(snapshot, known.pods, usage), qos)


def _past(options: RecommendOptions, span: Span, progress: Progress) -> _Past:
    if options.samples is not None:
        return _Past(*read_folder(options.samples, options.namespace, options.timezone, datetime.now(UTC)))
    queries, ending = _queries(options.history), Event()
    asks = [connected(options.history, span, ending.is_set).ask_range for _ in range(_AT_ONCE)]

    def tell(done: int, of: int) -> None:
        progress.tell(Stage("reading hours of history", done // _HOUR, of // _HOUR))

    try:
        with progress.shown():
            found = read_history(asks, queries, span, tell)
    finally:
        ending.set()  # where a person ends it, nobody waits for what the threads have asked
    if not found.measured.series:
        said = f": {found.missing[0]}" if found.missing else "; --cpu-query and --memory-query ask otherwise"
        raise UsageError(f"Prometheus has no such history{said}")
    ask = connected(options.history, span).ask_range
    trouble = read_trouble(ask, span)
    (controllers, no_owners), (starts, no_starts) = read_owners(ask, span), read_starts(ask, span)
    owners = {
        pod: workload_by_name(*pod) if kind == "Job" else Workload(pod[0], kind, name)
        for pod, (kind, name) in controllers.items()
        if kind != "ReplicaSet"
    }
    return _Past(found.measured, [*found.missing, *no_owners, *no_starts], trouble, owners, starts)


def span_of(asked: HistoryOptions, samples: str | None = None) -> Span:
    """Return the time that is asked about, in whole steps; raise UsageError if there is none, or not one source."""
    if [samples, asked.prometheus, asked.policy].count(None) != 2:  # noqa: PLR2004  one of three is given
        raise UsageError("give one of --samples, --prometheus and --policy")
    if not 0 < asked.step <= asked.history or asked.step % 1 or asked.history % 1:
        raise UsageError("--step and --history are whole seconds; --step is more than 0, and no longer than --history")
    try:
        now = (datetime.fromisoformat(asked.now) if asked.now else datetime.now(UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"--now {asked.now} is not a time; write it like 2026-01-15T12:00:00Z") from None
    step = int(asked.step)
    end = round(now) // step * step  # the same history for runs that are seconds apart
    return Span(end - int(asked.history), end, step)


def connected(asked: HistoryOptions, span: Span, is_ending: Callable[[], bool] = lambda: False) -> PromQL:
    """Return what asks the Prometheus; raise UsageError if the policy has none."""
    provider = Prometheus(url=asked.prometheus or "")
    if asked.prometheus is None:
        name = asked.policy or ""
        given = parse_sources(policy_text(name), name, strict=False).policy.metrics_providers
        found = next((each.prometheus for each in given if each.prometheus), None)
        if found is None:
            raise UsageError(f"policy {name} has no Prometheus in its metricsProviders; or give --prometheus URL")
        provider = found

    def read_secret(reference: SecretReference) -> str:
        raise SourceError(f"Secret {reference.namespace}/{reference.name} is not read here: use tokenFile")

    auth = credentials(provider, None, read_secret)
    return PromQL(provider, auth, None, datetime.fromtimestamp(span.end, UTC), is_ending)


def _queries(asked: HistoryOptions) -> HistoryQueries:
    queries = HistoryQueries()
    if asked.queries is not None:
        text = settings_text(asked.queries, "queries", f"--queries {asked.queries}: there is no such file")
        problems = Findings()
        queries = read(HistoryQueries, read_document(text, problems), problems) or queries
        problems.settle(asked.queries, strict=True, what="queries")
    changed = {
        name: getattr(queries, name).model_copy(update={"query": query})
        for name, query in (("cpu", asked.cpu_query), ("memory", asked.memory_query))
        if query is not None
    }
    return queries.model_copy(update=changed)


def _windows(measured: MeasuredContainers, options: RecommendOptions) -> tuple[Windows, list[str]]:
    if options.peak is not None:
        return parse_windows(options.peak, options.days), []
    totals = [each for each in zip(measured.times, measured.totals, strict=True) if each[1]] or [(measured.times[0], 0)]
    by_hour = hourly_totals((datetime.fromtimestamp(time, options.timezone), total) for time, total in totals)
    windows = found_peaks(by_hour, days_of_the_week(options.days))
    hours = ", ".join(f"{begin:%H:%M}-{end:%H:%M}" for begin, end in windows.spans)
    return windows, [f"peak hours found by cpu: {hours}; the day: {day_picture(by_hour)} (0 to 23 h)"]


def _histories(
    past: _Past, known: KnownCluster | None, windows: Windows, options: RecommendOptions
) -> tuple[list[History], Counter[PodName]]:
    """Return the histories, and the pods that match no workload of the cluster, with their numbers of samples."""
    times, owners = past.measured.times, {**past.owners, **(known.pods if known else {})}
    starting = _starting(past.measured, past.starts, ceil(options.warmup))
    spans = spans_of(times, {time: windows.day_of(datetime.fromtimestamp(time, options.timezone)) for time in times})
    pods: dict[tuple[Workload, str], list[OfPod]] = {}
    guessed: set[tuple[Workload, str]] = set()
    unmatched: Counter[PodName] = Counter()
    for name, series in past.measured.series.items():
        pod = (name.namespace, name.pod)
        workload = owners.get(pod) or workload_by_name(*pod)
        containers = known.containers.get(workload) if known else {}
        # A sample of a whole pod is that of its only container, if it has but one.
        only = containers if name.container == WHOLE_POD and containers and len(containers) == 1 else [name.container]
        key = (workload, next(iter(only)))
        if known and (containers is None or key[1] not in {WHOLE_POD, *containers}):
            unmatched[pod] += len(series)
            continue
        pods.setdefault(key, []).append(OfPod(name.pod, series, starting[name]))
        if pod not in owners:
            guessed.add(key)
    troubled: dict[tuple[Workload, str], set[ContainerOfPod]] = {}
    for name in {*past.trouble.killed, *past.trouble.throttled}:
        workload = owners.get((name[0], name[1])) or workload_by_name(name[0], name[1])
        troubled.setdefault((workload, name[2]), set()).add(name)
    return [
        _history(*key, Samples(found, spans), known, past.trouble, troubled.get(key, set()), by_name=key in guessed)
        for key, found in sorted(pods.items(), key=lambda each: each[0])
    ], unmatched


def _history(
    workload: Workload,
    container: str,
    samples: Samples,
    known: KnownCluster | None,
    trouble: Trouble,
    troubled: set[ContainerOfPod],
    *,
    by_name: bool,
) -> History:
    told = known.circumstances(workload, container) if known else ContainerCircumstances()
    kills, (throttled, days) = max(told.oom_kills, len(trouble.killed & troubled)), trouble.throttling(troubled)
    circumstances = replace(told, oom_kills=kills, throttled=throttled, throttled_days=days)
    now = known.containers[workload].get(container) if known else None
    replicas = known.replicas[workload] if known else 1
    return History(workload, container, samples, now, by_name, replicas, circumstances)


def _starting(
    measured: MeasuredContainers, restarts: Mapping[ContainerOfPod, set[int]], length: int
) -> dict[ContainerOfPod, list[tuple[int, int]]]:
    """Return when each container started up: with its pod, and as Prometheus tells of restarts.

    A pod that was there at the first sample may have run for long.
    """
    first: dict[PodName, int] = {}
    for name, series in measured.series.items():
        pod = (name.namespace, name.pod)
        first[pod] = min(series.first_time(), first.get(pod, measured.times[-1]))
    began = min(first.values())
    starts = {name: {first[name[:2]]} - {began} | restarts.get(name, set()) for name in measured.series}
    return {name: [(time, time + length) for time in sorted(found)] for name, found in starts.items()}


def _traits(history: History, known: KnownCluster | None) -> set[str]:
    workload = history.workload
    names = {workload.name, f"{workload.namespace}/{workload.name}", f"namespace:{workload.namespace}"}
    return names | known.traits[workload] if known else names


_PODS = 'container!="",container!="POD"'
_USED = {
    CPU: '1000 * sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[5m]))',
    MEMORY: 'sum by (node) (container_memory_working_set_bytes{id="/"})',
}
_USED_BY_PODS = {
    CPU: f"1000 * sum by (node) (rate(container_cpu_usage_seconds_total{{{_PODS}}}[5m]))",
    MEMORY: f"sum by (node) (container_memory_working_set_bytes{{{_PODS}}})",
}
_DAY = 86_400
NodeUsage = dict[str, dict[str, int]]  # by node and resource


def recommended_reservations(snapshot: str, history: HistoryOptions) -> tuple[list[Reservation], list[str]]:
    """Return what kubelets should keep, from days of a Prometheus or the file's only sample, and remarks."""
    cluster = read_snapshot_file(snapshot).collection.snapshot(datetime.now(UTC))
    used, system = _sampled(cluster)
    remarks: list[str] = []
    if history.prometheus or history.policy:
        span = span_of(history)
        ask = connected(history, span).ask_range
        for name in (CPU, MEMORY):
            try:
                _raise(used, name, _highest(ask, _USED[name], span))
                _raise(system, name, _highest(ask, f"({_USED[name]}) - ({_USED_BY_PODS[name]})", span))
            except SourceError as error:
                remarks.append(f"what nodes use of {name} is not known from Prometheus: {error}")
    if not system:
        remarks.append("nobody measured what the system uses: take a snapshot with a metrics-server, or --prometheus")
    strangers = used.keys() - {node.name for node in cluster.nodes}
    if strangers:
        remarks.append(f"Prometheus tells of nodes that are not in the file: {', '.join(sorted(strangers)[:3])}")
    requested: dict[str, dict[str, int]] = {}
    for pod in cluster.pods:
        if pod.active:
            add(requested.setdefault(pod.node, {}), pod.spec.requests)
    return reservations(cluster.nodes, used, system, requested), remarks


def _sampled(cluster: Snapshot) -> tuple[NodeUsage, NodeUsage]:
    """Return what the file's sample of metrics-server tells: the usage of nodes, and the part of it that no pod has."""
    by_pods: NodeUsage = {}
    measured = {(each.namespace, each.name): each.usage for each in cluster.pod_metrics or ()}
    unmeasured: set[str] = set()
    for pod in cluster.pods:
        if pod.key in measured:
            add(by_pods.setdefault(pod.node, {}), measured[pod.key])
        elif pod.phase == "Running":
            unmeasured.add(pod.node)
    used = {each.name: dict(each.usage) for each in cluster.node_metrics or ()}
    system: NodeUsage = {}
    for node, amounts in used.items():
        if node not in unmeasured:
            known = [name for name in (CPU, MEMORY) if name in amounts]
            system[node] = {name: max(amounts[name] - by_pods.get(node, {}).get(name, 0), 0) for name in known}
    return used, system


def _highest(ask: AskRange, query: str, span: Span) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for begin in range(round(span.start), round(span.end), _DAY):
        wanted = f"max_over_time(({query})[1h:5m])"
        end = min(begin + _DAY, span.end)
        for series in ask(wanted, min(begin + _HOUR, end), end, _HOUR).series:
            node = series.labels.get("node", "")
            values = (round(each.value) for each in series.values if 0 <= each.value < inf)
            found[node] = max(found.get(node, 0), *values, 0)
    return found


def _raise(into: NodeUsage, resource: str, amounts: Resources) -> None:
    for node, amount in amounts.items():
        known = into.setdefault(node, {})
        known[resource] = max(known.get(resource, 0), amount)
