"""Metrics of runs that end before Prometheus scrapes them: to a file for node-exporter, to a Pushgateway."""

import logging
from urllib.parse import urlsplit

from prometheus_client import push_to_gateway, write_to_textfile

from rebalancer.app.options import ExportOptions
from rebalancer.metrics import Metrics

_LOG = logging.getLogger(__name__)

_JOB = "rebalancer"
_SECONDS = 10.0


def export(options: ExportOptions, metrics: Metrics, cluster: dict[str, str | None]) -> None:
    """Send the metrics where the options say; a failure is logged as a warning and does not fail the run."""
    if options.metrics_textfile:
        try:
            write_to_textfile(options.metrics_textfile, metrics.registry)
        except OSError as error:
            _LOG.warning("the metrics cannot be written to %s: %s", options.metrics_textfile, error.strerror)
    if options.pushgateway:
        try:
            key = {"cluster": cluster_name(cluster)}
            push_to_gateway(options.pushgateway, _JOB, metrics.registry, grouping_key=key, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            _LOG.warning("the metrics cannot be pushed to %s: %s", options.pushgateway, error)


def cluster_name(cluster: dict[str, str | None]) -> str:
    """Return a name for the cluster: its context, or in a pod the API server's host."""
    return cluster.get("context") or urlsplit(cluster.get("server") or "").hostname or "unknown"
