"""What a process reports while it runs: metrics, traces, health, progress, and pages that are served, in one place.

Metrics of runs that end before Prometheus scrapes them are exported: to a file for node-exporter, to a Pushgateway.
"""

import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from markupsafe import Markup
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, push_to_gateway, write_to_textfile

from rebalancer.clock import boottime
from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.pod import Pod
from rebalancer.engine.ledger import Entry
from rebalancer.errors import SourceError, StrategyError
from rebalancer.eviction.causes import Cause
from rebalancer.kube.answers import verb_and_resource
from rebalancer.policy.usage import MetricsUtilization
from rebalancer.report.document import Finished
from rebalancer.report.layout import count
from rebalancer.report.words import text
from rebalancer.run.options import ExportOptions, Options, ServingOptions, TracingOptions, in_pod
from rebalancer.run.progress import Progress
from rebalancer.run.work import has_failed
from rebalancer.telemetry.checks import Checks, PageOf, ServedPage, health_page
from rebalancer.telemetry.metrics import ProcessMetrics
from rebalancer.untrusted.address import Address, read_address
from rebalancer.untrusted.printable import printable

_LOG = logging.getLogger(__name__)
#: OpenTelemetry's environment variables for where to send traces.
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_JOB = "rebalancer"
_PUSH_SECONDS = 10.0  # for all of a push: connecting, sending and the answer
_SLACK_SECONDS = 120.0  # how long a cycle may take beyond its deadline: the last request, its retries, Events
_INTERVALS = 3  # A leader is not ready if its last cycle ended longer ago than the present pause plus so many intervals
DEFAULT_PORT = 10258  # the descheduler's port, which the probes in its manifests and its chart use
REFRESH_SECONDS = 30  # how often a browser asks again for a page
#: What the pages of a run and of `mark` show.
_SHOWS = {
    "/healthz": "whether the process works",
    "/livez": "the same, for a liveness probe",
    "/readyz": "whether it is of use now",
    "/metrics": "for Prometheus",
    "/report": "what the last cycle did: pods, reasons, nodes before and after",
    "/nodes": "nodes under pressure",
    "/status": "what the last cycle or evaluation found",
}
#: Returns a span; it begins when it is entered, as a child of the open one.
Span = Callable[..., AbstractContextManager[object]]


def no_span(*_: object, **_attributes: object) -> AbstractContextManager[object]:
    """Trace nothing (a `Span`)."""
    return nullcontext()


class Health:
    """What probes are told: whether the program is alive, and whether it does its work.

    Written by the cycles' thread and read by the server's; each field is replaced as a whole, so no lock is needed.

    `deadline` is the seconds after which a cycle evicts nothing more, with those for which it waits for another run.
    What is wrong is empty where nothing is; `source_problem` is None where readiness does not depend on it.
    """

    def __init__(self, deadline: float, interval: float, clock: Callable[[], float] = boottime) -> None:
        self._longest_cycle = deadline + _SLACK_SECONDS
        self._interval = interval
        self._clock = clock
        self._cycle_began: float | None = None
        self._cycle_ended = clock()
        self._pause = interval
        self._is_following = False
        self.policy_problem = ""
        self.api_problem = "the API server was not asked yet"
        self.source_problem: str | None = None

    def cycle_began(self) -> None:
        """Record that a cycle begins."""
        self._cycle_began = self._clock()

    def cycle_ended(self, pause: float) -> None:
        """Record that a cycle is over, good or failed, and the longest time until the next one starts, in seconds."""
        self._pause, self._cycle_ended, self._cycle_began = pause, self._clock(), None

    @contextmanager
    def following(self) -> Iterator[None]:
        """While this is entered, another process leads."""
        self._is_following = True
        yield
        self._is_following, self._cycle_ended = False, self._clock()

    def alive(self) -> Checks:
        """Return the checks of `/healthz`: they fail only where a restart helps."""
        began = self._cycle_began
        seconds = self._clock() - began if began is not None else 0.0
        stuck = seconds > self._longest_cycle
        return {"ping": "", "cycle": f"it began {seconds:.0f} s ago and has not ended" if stuck else ""}

    def ready(self) -> Checks:
        """Return the checks of `/readyz`: whether the program does its work."""
        policy = "it cannot be used (the log says why)" if self.policy_problem else ""
        age = self._clock() - self._cycle_ended
        is_due = self._interval and not self._is_following and age > self._pause + _INTERVALS * self._interval
        overdue = f"the last one ended {age:.0f} s ago, and one is due every {self._interval:g} s" if is_due else ""
        checks = {"policy": policy, "api": self.api_problem, "cycles": overdue}
        if self.source_problem is not None:
            checks["sources"] = "" if self._is_following else self.source_problem
        return checks


class Telemetry:
    """Metrics, traces, health and progress of a process."""

    def __init__(self, options: Options, span: Span = no_span, progress: Progress | None = None) -> None:
        self.progress = progress or Progress()
        self.metrics = ProcessMetrics(dry_run=options.dry_run)
        self.metrics.interval.set(options.interval)
        self.health = Health(options.deadline + options.lease.lease_wait, options.interval)
        self._span = span
        self.result = "failed"  # how the cycle ended: succeeded, failed or skipped
        #: When the next cycle of a loop starts; None before the first one has ended.
        self.next_cycle: datetime | None = None
        self.problem = ""  # why the last cycle of a loop has no report; empty if it has one
        self._last_report = b""

    def request(self, method: str, path: str, status: int) -> None:
        """Count a request to the API server; any answer shows that the server is reachable."""
        self.metrics.requests.labels(verb_and_resource(method, path)[0], str(status) if status else "none").inc()
        self.health.api_problem = "" if status else "the API server did not answer the last request"

    @property
    def last_report(self) -> Mapping[str, Any] | None:
        """The report of the last cycle of a loop, which is kept packed: it may be large; None before."""
        packed = self._last_report
        return msgspec.json.decode(zlib.decompress(packed)) if packed else None

    @last_report.setter
    def last_report(self, report: Mapping[str, Any]) -> None:
        self._last_report = zlib.compress(msgspec.json.encode(report), 1)

    @contextmanager
    def cycle(self) -> Iterator[None]:
        """Trace and count a cycle; one that raises has failed."""
        self.health.cycle_began()
        start = time.perf_counter()
        self.result = "failed"
        try:
            with self._span("cycle"):
                yield
        finally:
            self.metrics.cycle_ended(self.result, time.perf_counter() - start)

    def finished(self, finished: Finished) -> None:
        """Count the outcome of a cycle."""
        ledger = finished.ledger
        self.result = "skipped" if ledger.skipped else "failed" if has_failed(ledger) else "succeeded"
        self.metrics.ledger_closed(ledger)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure, trace and show a stage of a cycle."""
        with self.metrics.stages.labels(name).time(), self._span(name), self.progress.stage(name):
            yield

    def observe(self, entry: Entry) -> None:
        """Count a verdict."""
        self.metrics.observe(entry)
        self.progress.observed(entry)

    def around(self, profile: str, strategy: str) -> AbstractContextManager[object]:
        """Trace and show a strategy (a `rebalancer.engine.cycle.Around`)."""
        self.progress.around(profile, strategy)
        return self._span(strategy, attributes={"plugin": strategy, "profile": profile})

    def evicting(self, pod: Pod, because: Cause) -> AbstractContextManager[object]:
        """Trace an eviction."""
        named = {"podName": pod.name, "podNamespace": pod.namespace, "reason": text(because), "operation": "evict"}
        return self._span("EvictPod", attributes=named)

    def samples(self, source: str, taken: datetime) -> None:
        """Record when the oldest sample of a source was taken."""
        self.metrics.ages.labels(source).set(max(0.0, (datetime.now(UTC) - taken).total_seconds()))

    def measure(self, measure: Measure) -> Measure:
        """Return the same source of usage, with its answers and failures counted."""

        def counted(cluster: Cluster, wanted: object) -> Measured:
            if not isinstance(wanted, MetricsUtilization):
                return measure(cluster, wanted)
            source = wanted.origin
            try:
                measured = measure(cluster, wanted)
            except StrategyError:
                self.metrics.source_errors.labels(source).inc()
                raise
            self.metrics.stale_nodes.labels(source).set(len(measured.missing))
            return measured

        return counted


@contextmanager
def traced(options: TracingOptions) -> Iterator[Span]:
    """Send spans while this is entered, if an option or a variable says where to; failures are only logged."""
    with ExitStack() as stack:
        span: Span = no_span
        if options.collector_endpoint or any(os.environ.get(name) for name in _VARIABLES):
            try:
                from rebalancer.telemetry.tracing import sending  # noqa: PLC0415  an extra

                spans = sending(
                    endpoint=options.collector_endpoint,
                    ca_file=options.transport_ca_cert,
                    service=options.service_name,
                    namespace=options.trace_namespace,
                    sample_rate=options.sample_rate,
                )
                span = stack.enter_context(spans)
            except ImportError as error:
                _LOG.error("there will be no traces: %s; install kube-rebalancer[otel]", error)
            except (OSError, ValueError, RuntimeError) as error:
                _LOG.error("there will be no traces: %s", error)
        yield span


def export(
    options: ExportOptions, metrics: ProcessMetrics, cluster: dict[str, str | None], is_ending: Callable[[], bool]
) -> None:
    """Send the metrics where the options say; a failure is logged as a warning and does not fail the run."""
    if options.metrics_textfile:
        try:
            _write(Path(options.metrics_textfile).resolve(), metrics)  # a link stays a link
        except OSError as error:
            _LOG.warning("the metrics cannot be written to %s: %s", options.metrics_textfile, error.strerror)
    if options.pushgateway:
        address = read_address(options.pushgateway)
        # In a pod there is no context.
        name = cluster.get("context") or urlsplit(cluster.get("server") or "").hostname or "unknown"
        try:
            _push(address, metrics, {"cluster": name}, is_ending)
        except SourceError as error:
            _LOG.warning("the metrics cannot be pushed to %s: %s", address.url, error)


def _write(path: Path, metrics: ProcessMetrics) -> None:
    if path.exists() and not path.is_file():
        raise OSError(0, "it is not a regular file")  # a device, a pipe or a folder: renaming would replace that
    write_to_textfile(str(path), metrics.registry)


def _push(address: Address, metrics: ProcessMetrics, key: dict[str, str], is_ending: Callable[[], bool]) -> None:
    from rebalancer.usage.session import Session, from_userinfo, plain  # noqa: PLC0415

    auth = from_userinfo(address)
    with Session(
        "the Pushgateway", _PUSH_SECONDS, plain, auth=auth, tries=1, cures=("", ""), is_ending=is_ending
    ) as session:
        session.trust(None, "https://")

        def handler(
            url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
        ) -> Callable[[], Any]:
            del timeout  # that of the session counts, from the first try to the last
            return partial(session.tries, partial(session.request, method, url, headers=dict(headers), data=data))

        push_to_gateway(address.url, _JOB, metrics.registry, key, handler=handler)


@contextmanager
def served(options: ServingOptions, telemetry: Telemetry, more: Mapping[str, PageOf] | None = None) -> Iterator[None]:
    """Serve health and metrics while this is entered: by default in a pod, outside a pod only if asked for.

    `more` are further pages, by path, instead of those of the last cycle.
    """
    port = options.secure_port if options.secure_port is not None else DEFAULT_PORT if in_pod() else 0
    if not port:
        yield
        return
    from rebalancer.telemetry.server import Identity, serving  # noqa: PLC0415  takes 0.1 s, and not every run serves

    suites = tuple(filter(None, options.tls_cipher_suites.split(",")))
    tls = (options.tls_cert_file, options.tls_private_key_file, options.tls_min_version, suites)
    identity = None if options.insecure_http else Identity(*tls)
    metrics = not options.disable_metrics
    last = dict.fromkeys(("/report", "/status") if metrics else (), lambda _: _report(telemetry))
    found = {**pages(telemetry, metrics=metrics), **(more or last)}
    found["/"] = lambda _: _index(telemetry, [path for path in found if path.count("/") == 1 and path != "/"])
    with serving(options.bind_address, port, found, identity):
        yield


def pages(telemetry: Telemetry, *, metrics: bool) -> dict[str, PageOf]:
    """Return what is served, by path."""
    alive, ready = telemetry.health.alive, telemetry.health.ready
    found: dict[str, PageOf] = {"/healthz/Descheduler": partial(_checked, "healthz", alive)}
    for name, checks in (("healthz", alive), ("livez", alive), ("readyz", ready)):
        found[f"/{name}"] = partial(_checked, name, checks)
        found |= {f"/{name}/{check}": partial(_checked, check, checks) for check in checks()}
    if metrics:
        found["/metrics"] = lambda _: ServedPage(200, telemetry.metrics.exposition(), CONTENT_TYPE_PLAIN_0_0_4)
    return found


def document_page(document: object, html: Callable[[Any], str], refresh: int = 0) -> ServedPage:
    """Return a document as JSON, and as a page for a browser."""
    body = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"  # fast, since probes wait meanwhile
    return ServedPage(200, body, "application/json", lambda: html(document).encode(), refresh)


def _report(telemetry: Telemetry) -> ServedPage:
    report = telemetry.last_report
    if report is None:
        return ServedPage(404, b"no cycle of a loop has ended yet\n")

    from rebalancer.report.page import html  # noqa: PLC0415  templates: only where asked

    return document_page(report, html)


def _index(telemetry: Telemetry, paths: Iterable[str]) -> ServedPage:
    rows, links = list(_state(telemetry)), sorted(paths)
    text = "".join(f"{label}: {state}\n" for label, state in rows) + "".join(f"{path}\n" for path in links)

    def page() -> bytes:
        from rebalancer.report.page import rendered  # noqa: PLC0415  as above

        shown = [(Markup('<a href="{0}">{0}</a>').format(path), _SHOWS.get(path, "")) for path in links]
        return rendered(title="rebalancer", head=rows, tables=[("Pages", ("path", "what it shows"), shown)]).encode()

    return ServedPage(200, text.encode(), html=page, refresh=REFRESH_SECONDS)


def _state(telemetry: Telemetry) -> Iterator[tuple[str, str]]:
    for label, checks in (("healthy", telemetry.health.alive()), ("ready", telemetry.health.ready())):
        wrong = [f"{check}: {problem}" for check, problem in checks.items() if problem]
        yield label, "; ".join(wrong) or "yes"
    if telemetry.problem:
        yield "last cycle", f"failed: {printable(telemetry.problem)}"
    elif report := telemetry.last_report:
        verb = "would be evicted" if report["dryRun"] else "evicted"
        done = f"{count(len(report['evictions']), 'pod')} {verb}, {len(report['refusals'])} refused"
        yield f"last cycle, {report['now'][:19]}Z", report["skipped"] or done
        for run in report["strategies"]:
            yield run["strategy"], run["error"] or run["summary"]
    if telemetry.next_cycle:
        yield "next cycle", f"{telemetry.next_cycle:%Y-%m-%dT%H:%M:%SZ}"


def _checked(name: str, checks: Callable[[], Checks], verbose: bool) -> ServedPage:
    found = checks()
    return health_page(name, {name: found[name]} if name in found else found, verbose=verbose)
