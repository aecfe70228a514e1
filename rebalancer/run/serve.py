"""Which pages are served, and whether a server is started at all."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from rebalancer.run.options import ServingOptions
from rebalancer.run.telemetry import Telemetry
from rebalancer.telemetry.checks import Checks, PageOf, ServedPage, TlsSettings, health_page

#: The descheduler's port, which the probes in its manifests and its chart use.
DEFAULT_PORT = 10258

NO_PAGES: Mapping[str, PageOf] = MappingProxyType({})


@contextmanager
def served(
    options: ServingOptions,
    telemetry: Telemetry,
    environ: Mapping[str, str] = os.environ,
    more: Mapping[str, PageOf] = NO_PAGES,
) -> Iterator[None]:
    """Serve health and metrics while this is entered: by default in a pod, outside a pod only if asked for.

    Args:
        options: where and how.
        telemetry: what is healthy, and what is counted.
        environ: says whether this is a pod.
        more: further pages, by path.

    Raises:
        UsageError: the port cannot be opened, or the certificate cannot be used.
    """
    port = options.secure_port
    if port is None:
        port = DEFAULT_PORT if environ.get("KUBERNETES_SERVICE_HOST") else 0
    if not port:
        yield
        return
    from rebalancer.telemetry.server import Server  # noqa: PLC0415  takes 0.1 s, and not every run serves
    from rebalancer.telemetry.tls import Identity  # noqa: PLC0415

    identity = Identity(_tls(options))
    found = {**pages(telemetry, metrics=not options.disable_metrics), **more}
    with Server(options.bind_address, port, found, identity):
        yield


def pages(telemetry: Telemetry, *, metrics: bool) -> dict[str, PageOf]:
    """Return what is served, by path."""
    found = {
        **_health("healthz", telemetry.health.alive),
        "/healthz/Descheduler": _whole("healthz", telemetry.health.alive),
        **_health("livez", telemetry.health.alive),
        **_health("readyz", telemetry.health.ready),
    }
    if metrics:
        found["/metrics"] = lambda _: ServedPage(200, telemetry.metrics.exposition(), CONTENT_TYPE_PLAIN_0_0_4)
    return found


def _health(name: str, checks: Callable[[], Checks]) -> dict[str, PageOf]:
    return {f"/{name}": _whole(name, checks), **{f"/{name}/{check}": _single(check, checks) for check in checks()}}


def _whole(name: str, checks: Callable[[], Checks]) -> PageOf:
    return lambda verbose: health_page(name, checks(), verbose=verbose)


def _single(check: str, checks: Callable[[], Checks]) -> PageOf:
    return lambda verbose: health_page(check, {check: checks()[check]}, verbose=verbose)


def _tls(options: ServingOptions) -> TlsSettings:
    suites = tuple(filter(None, options.tls_cipher_suites.split(",")))
    return TlsSettings(options.tls_cert_file, options.tls_private_key_file, options.tls_min_version, suites)
