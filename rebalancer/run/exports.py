"""Metrics of runs that end before Prometheus scrapes them: to a file for node-exporter, to a Pushgateway."""

import logging
from collections.abc import Callable
from functools import partial
from http.client import HTTPException
from urllib.parse import urlsplit

from prometheus_client import push_to_gateway, write_to_textfile
from prometheus_client.exposition import basic_auth_handler, default_handler

from rebalancer.run.options import ExportOptions
from rebalancer.telemetry.metrics import Metrics
from rebalancer.untrusted.address import Address, read_address

_LOG = logging.getLogger(__name__)

_JOB = "rebalancer"
_SECONDS = 10.0

#: How the Prometheus client is given a way to send a request.
Handler = Callable[[str, str, float | None, list[tuple[str, str]], bytes], Callable[[], None]]


def export(options: ExportOptions, metrics: Metrics, cluster: dict[str, str | None]) -> None:
    """Send the metrics where the options say; a failure is logged as a warning and does not fail the run."""
    if options.metrics_textfile:
        try:
            write_to_textfile(options.metrics_textfile, metrics.registry)
        except OSError as error:
            _LOG.warning("the metrics cannot be written to %s: %s", options.metrics_textfile, error.strerror)
    if options.pushgateway:
        address = read_address(options.pushgateway)
        try:
            key, handler = {"cluster": cluster_name(cluster)}, _handler(address)
            push_to_gateway(address.url, _JOB, metrics.registry, key, timeout=_SECONDS, handler=handler)
        except (OSError, ValueError, HTTPException) as error:  # the last: what answers does not speak HTTP
            _LOG.warning("the metrics cannot be pushed to %s: %s", address.url, error)


def _handler(address: Address) -> Handler:
    if not address.has_userinfo:
        return default_handler
    return partial(basic_auth_handler, username=address.username, password=address.password)


def cluster_name(cluster: dict[str, str | None]) -> str:
    """Return a name for the cluster: its context, or in a pod the API server's host."""
    return cluster.get("context") or urlsplit(cluster.get("server") or "").hostname or "unknown"
