"""Recommends requests, and what kubelets should keep, from what was measured and a cluster file; changes nothing."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import ceil
from threading import Event
from zoneinfo import ZoneInfo

from rebalancer.cluster.resources import CPU, MEMORY, add
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SourceError, UsageError
from rebalancer.policy.document import read_document
from rebalancer.policy.findings import Findings
from rebalancer.policy.usage import Prometheus
from rebalancer.policy.validation import read
from rebalancer.recommendation import findings, workloads
from rebalancer.recommendation import samples as sampled
from rebalancer.recommendation.rules import WARNINGS, Amounts, Reservation, reservations, rules
from rebalancer.recommendation.samples import ContainerOfPod, MeasuredContainers, Samples
from rebalancer.recommendation.workloads import History, Recommendation, Workload
from rebalancer.report.layout import count, listed
from rebalancer.run.options import HistoryOptions
from rebalancer.run.policies import given_time, read_policy, settings_text
from rebalancer.run.progress import Progress, Stage
from rebalancer.run.recommended_cluster import KnownCluster, PodName, read_known_cluster
from rebalancer.run.sample_folder import read_folder
from rebalancer.run.snapshot_file import read_snapshot_file
from rebalancer.run.work import beside, no_secret, read_scheduler
from rebalancer.usage.history import AskRange, HistoryQueries, Span, read_history
from rebalancer.usage.past import Trouble, read_owners, read_starts, read_trouble
from rebalancer.usage.promql import PromQL
from rebalancer.usage.sample_age import usable
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
    """What was asked for; names as on the command line, durations in seconds."""

    samples: str | None
    history: HistoryOptions
    snapshot: str | None
    namespace: str
    peak: str | None  # None where the peaks are to be found
    days: str
    timezone: ZoneInfo
    rule: str
    request_share: float
    core: Sequence[str]
    min_days: int
    min_samples: int
    warmup: float
    what_if: bool
    scheduler_config: str | None


_Key = tuple[Workload, str]  # a workload and the name of a container


@dataclass(frozen=True, slots=True)
class _Past:
    """What was measured, and what is missing of it; Prometheus also tells of trouble, owners, and late starts."""

    measured: MeasuredContainers
    missing: Sequence[str]
    trouble: Trouble = field(default_factory=Trouble)
    owners: Mapping[PodName, Workload] = field(default_factory=dict)
    starts: Mapping[ContainerOfPod, set[int]] = field(default_factory=dict)


def recommendations(options: RecommendOptions, progress: Progress) -> tuple[findings.Recommendations, list[str]]:
    """Return what is recommended for each container, by namespace and name in order, and remarks for the reader."""
    offered, core = rules(), set(options.core)
    if options.rule not in offered:
        raise UsageError(f"--rule {options.rule} is not a rule; there are {', '.join(offered)}")
    past = _past(options, span_of(options.history, options.samples), progress)
    known = read_known_cluster(options.snapshot) if options.snapshot else None
    windows, about = _windows(past.measured, options)
    histories, unmatched = _histories(past, known, windows, options)
    remarks = [*past.missing, *past.trouble.missing, *about, *WARNINGS.get(options.rule, ())]
    if unmatched:
        told = f"{count(unmatched.total(), 'sample')} of {count(len(unmatched), 'pod')} without a workload or container"
        remarks.append(f"{told} in the cluster: {listed(map('/'.join, sorted(unmatched)), _NAMED)}")
    enough, traits = (options.min_days, options.min_samples), [_traits(each, known) for each in histories]
    found = [
        workloads.recommend(each, offered[options.rule], options.request_share, *enough, core=not core.isdisjoint(its))
        for each, its in zip(histories, traits, strict=True)
    ]
    absent = core.difference(*traits)
    remarks += [f"--core {name} selects no workload that was measured" for name in sorted(absent)]
    if known is None:
        return findings.Recommendations(found), remarks
    remarks += known.left_out
    if "HorizontalPodAutoscaler" not in known.seen:
        remarks.append(_NO_SCALERS)
    snapshot = beside(known.checked_snapshot(), read_scheduler(options.scheduler_config))
    remarks += snapshot.warnings if options.what_if else ()
    return _in_cluster(known, snapshot, found, progress if options.what_if else None), remarks


def _in_cluster(
    known: KnownCluster, snapshot: Snapshot, found: list[Recommendation], foretelling: Progress | None
) -> findings.Recommendations:
    """Add what the cluster file tells: the quality of service, and what would be if the requests were others."""
    changes: dict[Workload, dict[str, Amounts]] = {}
    for each in found:
        if each.change:
            changes.setdefault(each.history.workload, {})[each.history.container] = each.change
    measured = findings.pod_usage([each.history for each in found], known.pods)
    specs = known.specs_with(changes)
    owned = [pod for pod in snapshot.pods if pod.key in known.pods]
    qos = {known.pods[pod.key]: (pod.spec.qos, specs.get(pod.key, pod.spec).qos) for pod in owned}
    if foretelling and not snapshot.nodes:
        raise UsageError("--what-if needs nodes in --snapshot: `rebalancer snapshot` writes all that it needs")
    usage = {(each.namespace, each.name): each.usage for each in snapshot.pod_metrics or ()} | measured
    foretold = None
    if foretelling:
        with foretelling.shown():
            told = partial(Stage, "placing pods anew")
            foretold = findings.what_if(snapshot, specs, usage, lambda *far: foretelling.tell(told(*far)))
    return findings.Recommendations(found, foretold, findings.heavy_neighbours(snapshot, known.pods, usage), qos)


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
        pod: workloads.workload_by_name(*pod) if kind == "Job" else Workload(pod[0], kind, name)
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
    now, step = given_time(asked.now) if asked.now else datetime.now(UTC), int(asked.step)
    end = round(now.timestamp()) // step * step  # the same history for runs that are seconds apart
    return Span(end - int(asked.history), end, step)


def connected(asked: HistoryOptions, span: Span, is_ending: Callable[[], bool] = lambda: False) -> PromQL:
    """Return what asks the Prometheus; raise UsageError if the policy has none."""
    provider = Prometheus(url=asked.prometheus or "")
    if asked.prometheus is None:
        name = asked.policy or ""
        given = read_policy(name, strict=False, runs=False).policy.metrics_providers
        found = next((each.prometheus for each in given if each.prometheus), None)
        if found is None:
            raise UsageError(f"policy {name} has no Prometheus in its metricsProviders; or give --prometheus URL")
        provider = found

    auth = credentials(provider, None, no_secret)
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


def _windows(measured: MeasuredContainers, options: RecommendOptions) -> tuple[sampled.Windows, list[str]]:
    if options.peak is not None:
        return sampled.parse_windows(options.peak, options.days), []
    every = list(zip(measured.times, measured.totals, strict=True))
    totals = [each for each in every if each[1]] or every
    by_hour = sampled.hourly_totals((datetime.fromtimestamp(time, options.timezone), total) for time, total in totals)
    windows = sampled.found_peaks(by_hour, sampled.parse_days(options.days))
    hours = ", ".join(f"{begin:%H:%M}-{end:%H:%M}" for begin, end in windows.spans)
    return windows, [f"peak hours found by cpu: {hours}; the day: {sampled.day_picture(by_hour)} (0 to 23 h)"]


def _histories(
    past: _Past, known: KnownCluster | None, windows: sampled.Windows, options: RecommendOptions
) -> tuple[list[History], Counter[PodName]]:
    """Return the histories, and the pods that match no workload of the cluster, with their numbers of samples."""
    times, owners = past.measured.times, {**past.owners, **(known.pods if known else {})}
    days = {time: windows.day_of(datetime.fromtimestamp(time, options.timezone)) for time in times}
    spans, starting = sampled.spans_of(times, days), _starting(past.measured, past.starts, ceil(options.warmup))
    pods: dict[_Key, list[sampled.OfPod]] = {}
    guessed: set[_Key] = set()
    unmatched: Counter[PodName] = Counter()
    for name, series in past.measured.series.items():
        (namespace, pod, container), workload = name, _whose(name, owners)
        containers = known.containers.get(workload, {}) if known else {}
        if container == workloads.WHOLE_POD and len(containers) == 1:  # that of its only container
            container = next(iter(containers))
        if known and (workload not in known.containers or container not in {workloads.WHOLE_POD, *containers}):
            unmatched[namespace, pod] += len(series)
            continue
        pods.setdefault((workload, container), []).append(sampled.OfPod(pod, series, starting[name]))
        if (namespace, pod) not in owners:
            guessed.add((workload, container))
    troubled: dict[_Key, set[ContainerOfPod]] = {}
    for name in {*past.trouble.killed, *past.trouble.throttled}:
        troubled.setdefault((_whose(name, owners), name.container), set()).add(name)
    found = sorted(pods.items(), key=lambda each: each[0])
    histories = [History(*key, Samples(each, spans), by_name=key in guessed) for key, each in found]
    return [_known(each, known, past.trouble, troubled) for each in histories], unmatched


def _whose(name: ContainerOfPod, owners: Mapping[PodName, Workload]) -> Workload:
    return owners.get((name.namespace, name.pod)) or workloads.workload_by_name(name.namespace, name.pod)


def _known(
    found: History, known: KnownCluster | None, trouble: Trouble, troubled: Mapping[_Key, set[ContainerOfPod]]
) -> History:
    """Add what the cluster file and Prometheus tell of a container besides what it used."""
    key = workload, container = found.workload, found.container
    if known:
        now, told = known.containers[workload].get(container), known.circumstances(workload, container)
        found = replace(found, now=now, replicas=known.replicas[workload], circumstances=told)
    names, told = troubled.get(key, set()), found.circumstances
    kills, (throttled, days) = max(told.oom_kills, len(trouble.killed & names)), trouble.throttling(names)
    return replace(found, circumstances=replace(told, oom_kills=kills, throttled=throttled, throttled_days=days))


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
    cluster = read_snapshot_file(snapshot).snapshot(datetime.now(UTC))
    used, system = _sampled(cluster)
    remarks: list[str] = []
    if history.prometheus or history.policy:
        span = span_of(history)
        ask = connected(history, span).ask_range
        for name in (CPU, MEMORY):
            try:
                _raise(used, name, ask, _USED[name], span)
                _raise(system, name, ask, f"({_USED[name]}) - ({_USED_BY_PODS[name]})", span)
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


def _raise(into: NodeUsage, resource: str, ask: AskRange, query: str, span: Span) -> None:
    """Raise the figures of nodes to their highest hour; Prometheus is asked for one day at a time."""
    wanted = f"max_over_time(({query})[1h:5m])"
    for begin in range(round(span.start), round(span.end), _DAY):
        end = min(begin + _DAY, span.end)
        for series in ask(wanted, min(begin + _HOUR, end), end, _HOUR).series:
            known = into.setdefault(series.labels.get("node", ""), {})
            values = (round(each.value) for each in series.values if usable(each.value))
            known[resource] = max(known.get(resource, 0), *values, 0)
