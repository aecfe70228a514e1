"""Which pages are served, and whether a server is started at all."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from html import escape

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from rebalancer.report.layout import count
from rebalancer.run.options import ServingOptions, in_pod
from rebalancer.run.telemetry import Telemetry
from rebalancer.telemetry.checks import Checks, PageOf, ServedPage, health_page

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
_INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rebalancer</title><style>
:root {{ color-scheme: light dark }} body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem; max-width: 60rem }}
th {{ text-align: left; padding-right: 2rem; vertical-align: top }}</style></head>
<body><h1>rebalancer</h1><table>{cells}</table><h2>Pages</h2><ul>{links}</ul></body></html>
"""


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


def _report(telemetry: Telemetry) -> ServedPage:
    report = telemetry.last_report
    if report is None:
        return ServedPage(404, b"no cycle of a loop has ended yet\n")
    from rebalancer.report.page import html  # noqa: PLC0415  templates: only where asked

    body = json.dumps(report, indent=2).encode() + b"\n"
    return ServedPage(200, body, "application/json", html(report).encode(), scripted=True)


def _index(telemetry: Telemetry, paths: Iterable[str]) -> ServedPage:
    rows = list(_state(telemetry))
    links = sorted(paths)
    text = "".join(f"{label}: {state}\n" for label, state in rows) + "".join(f"{path}\n" for path in links)
    cells = "".join(f"<tr><th scope=row>{escape(label)}</th><td>{escape(state)}</td></tr>" for label, state in rows)
    listed = "".join(f'<li><a href="{path}">{path}</a> {escape(_SHOWS.get(path, ""))}</li>' for path in links)
    page = _INDEX.format(cells=cells, links=listed)
    return ServedPage(200, text.encode(), html=page.encode(), refresh=REFRESH_SECONDS)


def _state(telemetry: Telemetry) -> Iterator[tuple[str, str]]:
    for label, checks in (("healthy", telemetry.health.alive()), ("ready", telemetry.health.ready())):
        wrong = [f"{check}: {problem}" for check, problem in checks.items() if problem]
        yield label, "; ".join(wrong) or "yes"
    if report := telemetry.last_report:
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
