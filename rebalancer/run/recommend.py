"""Recommends requests from a folder of samples, and from a cluster file if there is one; changes nothing."""

import logging
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from rebalancer.cluster.quantity import parse_milli_quantity, parse_quantity
from rebalancer.errors import SourceError, UsageError
from rebalancer.policy.providers import Prometheus, SecretReference
from rebalancer.recommendation.rules import Sample, Settings, rules
from rebalancer.recommendation.windows import Windows, day_picture, found_peaks, hourly_totals, parse_windows
from rebalancer.recommendation.windows import parse_days as days_of_the_week
from rebalancer.recommendation.workloads import (
    WHOLE_POD,
    Enough,
    History,
    Now,
    Recommendation,
    Workload,
    recommend,
    workload_by_name,
)
from rebalancer.report.headline import count
from rebalancer.report.recommendations import patches
from rebalancer.run.policies import parse_sources, policy_text
from rebalancer.run.sample_folder import Folder, read_folder
from rebalancer.untrusted.documents import LARGEST_FILE, decode_json, read_large, unpacked
from rebalancer.usage.credentials import credentials
from rebalancer.usage.history import CPU_QUERY, MEMORY_QUERY, ContainerSample, Span, read_history
from rebalancer.usage.promql import PromQL

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """What was asked for; `peak` is None where the peaks are to be found, `warmup` is in seconds."""

    samples: str | None
    prometheus: "PrometheusOptions | None"
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


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """Where the history is, and how it is asked for.

    Attributes:
        url: of a Prometheus that asks for no credentials; None for that of the policy.
        policy: a policy with a Prometheus in its metricsProviders; a file, or a preset's name.
        queries: for CPU and memory, each by namespace, pod and container; None for those of cAdvisor.
        seconds: so long a history, until now.
        step: seconds from sample to sample.
        now: seconds since 1970.
    """

    url: str | None
    policy: str | None
    queries: tuple[str | None, str | None]
    seconds: float
    step: float
    now: float


@dataclass(frozen=True, slots=True)
class Recommended:
    """What came of it; `remarks` are for standard error."""

    recommendations: list[Recommendation]
    remarks: list[str]


class _Resources(msgspec.Struct):
    requests: dict[str, str | float] = {}
    limits: dict[str, str | float] = {}


class _Container(msgspec.Struct):
    name: str
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _TemplateSpec(msgspec.Struct):
    containers: list[_Container] = []


class _TemplateOwner(msgspec.Struct):
    kind: str
    name: str
    controller: bool = False


class _MakerMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    owner_references: list[_TemplateOwner] = []


class _Object(msgspec.Struct):
    kind: str = ""
    metadata: _MakerMetadata = msgspec.field(default_factory=_MakerMetadata)
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _List(msgspec.Struct):
    items: list[_Object] = []


@dataclass(frozen=True, slots=True)
class _KnownPods:
    """The pods of a cluster file, by namespace and name, and the containers of their workloads."""

    pods: dict[tuple[str, str], Workload]
    containers: dict[Workload, dict[str, Now]]


def recommendations(options: RecommendOptions) -> Recommended:
    """Return what is recommended for each container, in the order of namespaces and names.

    Raises:
        UsageError: an option, the folder or the cluster file cannot be used.
    """
    offered = rules()
    if options.rule not in offered:
        raise UsageError(f"--rule {options.rule} is not a rule; there are {', '.join(offered)}")
    rule = offered[options.rule]()
    folder = _measured(options)
    known = _read_cluster(options.snapshot) if options.snapshot else None
    windows, about = _windows(folder.measured, options)
    histories, unmatched = _histories(folder.measured, known, windows, options)
    remarks = [*folder.skipped, *about, *([rule.warning] if rule.warning else []), *_unmatched(unmatched)]
    found = [
        recommend(each, rule, options.settings, options.enough, core=_is_core(each.workload, options.core))
        for each in histories
    ]
    absent = options.core - {name for each in histories for name in _spellings(each.workload)}
    remarks += [f"--core {name} is no workload that was measured" for name in sorted(absent)]
    return Recommended(found, remarks)


def _measured(options: RecommendOptions) -> Folder:
    if options.samples is not None:
        return read_folder(options.samples, options.namespace, options.timezone)
    asked = options.prometheus
    assert asked is not None
    promql, (cpu, memory) = _prometheus(asked), asked.queries
    end = asked.now - asked.now % asked.step  # the same history for runs that are seconds apart
    span = Span(end - asked.seconds, end, asked.step)
    found = read_history(promql.ask_range, (cpu or CPU_QUERY, memory or MEMORY_QUERY), span, _tell)
    if not found.measured:
        raise UsageError("Prometheus has no such history; --cpu-query and --memory-query ask otherwise")
    return Folder(found.measured, skipped=[*found.missing, *promql.warnings])


def _tell(share: float) -> None:
    _LOG.info("%.0f %% of the history is read", 100 * share)


def _prometheus(asked: PrometheusOptions) -> PromQL:
    provider = Prometheus(url=asked.url or "")
    if asked.url is None:
        name = asked.policy or ""
        given = parse_sources(policy_text(name), name, strict=False).policy.metrics_providers
        found = next((each.prometheus for each in given if each.prometheus), None)
        if found is None:
            raise UsageError(f"policy {name} has no Prometheus in its metricsProviders; or give --prometheus URL")
        provider = found
    auth = credentials(provider, None, _no_secret)
    return PromQL(provider, auth, None, datetime.fromtimestamp(asked.now, UTC))


def _no_secret(reference: SecretReference) -> str:
    raise SourceError(f"Secret {reference.namespace}/{reference.name} is not read here: use tokenFile")


def write_patches(folder: str, found: Sequence[Recommendation]) -> int:
    """Write a file for each workload that should change, and return how many there are.

    Raises:
        UsageError: the folder holds something, or cannot be written.
    """
    files = patches(found)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        if any(Path(folder).iterdir()):  # `kubectl apply -f` would apply what is there as well
            raise UsageError(f"--patches {folder} is not empty; name a new folder")
        for name, text in files.items():
            Path(folder, name).write_text(text)
    except OSError as error:
        raise UsageError(f"--patches {folder} cannot be written: {error.strerror}") from None
    return len(files)


def _windows(measured: list[ContainerSample], options: RecommendOptions) -> tuple[Windows, list[str]]:
    if options.peak is not None:
        return parse_windows(options.peak, options.days), []
    totals: Counter[int] = Counter()
    for each in measured:
        totals[each.time] += each.cpu
    by_hour = hourly_totals((datetime.fromtimestamp(time, options.timezone), total) for time, total in totals.items())
    windows = found_peaks(by_hour, days_of_the_week(options.days))
    hours = ", ".join(f"{begin:%H:%M}-{end:%H:%M}" for begin, end in windows.spans)
    return windows, [f"peak hours found by cpu: {hours}; the day: {day_picture(by_hour)} (0 to 23 h)"]


def _histories(
    measured: list[ContainerSample], known: _KnownPods | None, windows: Windows, options: RecommendOptions
) -> tuple[list[History], Counter[tuple[str, str]]]:
    """Return the histories, and the pods that match no workload of the cluster, with their numbers of samples."""
    began = measured[0].time
    first: dict[tuple[str, str], int] = {}
    days = {time: windows.day_of(datetime.fromtimestamp(time, options.timezone)) for time in {m.time for m in measured}}
    samples: dict[tuple[Workload, str], list[Sample]] = {}
    guessed: set[tuple[Workload, str]] = set()
    unmatched: Counter[tuple[str, str]] = Counter()
    for each in measured:
        pod = (each.namespace, each.pod)
        workload = known.pods.get(pod) if known else None
        by_name = workload is None
        workload = workload or workload_by_name(*pod)
        key = (workload, _container(workload, each.container, known))
        if known and key[1] not in known.containers.get(workload, {}) and each.container != WHOLE_POD:
            unmatched[pod] += 1
            continue
        if known and workload not in known.containers:
            unmatched[pod] += 1
            continue
        # Pods that were there at the first sample may have run for long.
        since = each.time - first.setdefault(pod, each.time)
        starting = first[pod] > began and since < options.warmup
        sample = Sample(each.time, each.pod, each.cpu, each.memory, days[each.time], starting)
        samples.setdefault(key, []).append(sample)
        if by_name:
            guessed.add(key)
    return [
        History(workload, container, found, _now(workload, container, known), (workload, container) in guessed)
        for (workload, container), found in sorted(samples.items(), key=lambda each: each[0])
    ], unmatched


def _container(workload: Workload, container: str, known: _KnownPods | None) -> str:
    """Return the container; a sample of a whole pod is that of its only container, if it has but one."""
    containers = known.containers.get(workload, {}) if known else {}
    return next(iter(containers)) if container == WHOLE_POD and len(containers) == 1 else container


def _now(workload: Workload, container: str, known: _KnownPods | None) -> Now | None:
    return known.containers[workload].get(container) if known else None


def _is_core(workload: Workload, core: frozenset[str]) -> bool:
    return not core.isdisjoint(_spellings(workload))


def _spellings(workload: Workload) -> tuple[str, str]:
    return workload.name, f"{workload.namespace}/{workload.name}"


def _unmatched(unmatched: Counter[tuple[str, str]]) -> Iterable[str]:
    if unmatched:
        names = ", ".join(f"{namespace}/{pod}" for namespace, pod in sorted(unmatched)[:3])
        more = "" if len(unmatched) <= 3 else ", ..."  # noqa: PLR2004  as many as are named above
        found = f"{count(unmatched.total(), 'sample')} of {count(len(unmatched), 'pod')}"
        yield f"{found} without a workload in the cluster: {names}{more}"


def _read_cluster(path: str) -> _KnownPods:
    """Read the pods of `kubectl get pods -A -o json` or `rebalancer snapshot`."""
    try:
        content = unpacked(read_large(path, LARGEST_FILE), LARGEST_FILE)
        listed = decode_json(content, _List).items
        known = _KnownPods({}, {})
        for each in listed:
            if each.kind == "Pod":
                _add_pod(known, each)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"--snapshot {path} cannot be read: {reason}") from None
    if not known.pods:
        raise UsageError(f"--snapshot {path} holds no pods; make it with `kubectl get pods -A -o json`")
    return known


def _add_pod(known: _KnownPods, pod: _Object) -> None:
    metadata = pod.metadata
    workload = _workload(metadata)
    known.pods[metadata.namespace, metadata.name] = workload
    containers = known.containers.setdefault(workload, {})
    for each in decode_json(pod.spec, _TemplateSpec).containers:
        containers[each.name] = _amounts(each.resources)


def _workload(metadata: _MakerMetadata) -> Workload:
    owner = next((each for each in metadata.owner_references if each.controller), None)
    if owner is None:
        return Workload(metadata.namespace, "Pod", metadata.name)
    template = metadata.labels.get("pod-template-hash", "")
    if owner.kind == "ReplicaSet" and template and owner.name.endswith(f"-{template}"):
        return Workload(metadata.namespace, "Deployment", owner.name.removesuffix(f"-{template}"))
    if owner.kind == "Job":
        return workload_by_name(metadata.namespace, metadata.name)
    return Workload(metadata.namespace, owner.kind, owner.name)


def _amounts(resources: _Resources) -> Now:
    def cpu(amounts: dict[str, str | float]) -> int | None:
        return parse_milli_quantity(amounts["cpu"]) if "cpu" in amounts else None

    def memory(amounts: dict[str, str | float]) -> int | None:
        return parse_quantity(amounts["memory"]) if "memory" in amounts else None

    return Now(cpu(resources.requests), cpu(resources.limits), memory(resources.requests), memory(resources.limits))
