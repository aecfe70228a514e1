"""Metrics of runs that end before Prometheus scrapes them: to a file for node-exporter, to a Pushgateway."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prometheus_client import push_to_gateway, write_to_textfile

from rebalancer.errors import SourceError
from rebalancer.run.options import ExportOptions
from rebalancer.telemetry.metrics import ProcessMetrics
from rebalancer.untrusted.address import Address, read_address

if TYPE_CHECKING:
    from rebalancer.usage.session import Session

_LOG = logging.getLogger(__name__)

_JOB = "rebalancer"
#: For all of a push: connecting, sending and the answer.
_SECONDS = 10.0


def export(
    options: ExportOptions, metrics: ProcessMetrics, cluster: dict[str, str | None], is_ending: Callable[[], bool]
) -> None:
    """Send the metrics where the options say; a failure is logged as a warning and does not fail the run."""
    if options.metrics_textfile:
        try:
            _write(Path(options.metrics_textfile), metrics)
        except OSError as error:
            _LOG.warning("the metrics cannot be written to %s: %s", options.metrics_textfile, error.strerror)
    if options.pushgateway:
        address = read_address(options.pushgateway)
        try:
            _push(address, metrics, {"cluster": cluster_name(cluster)}, is_ending)
        except SourceError as error:
            _LOG.warning("the metrics cannot be pushed to %s: %s", address.url, error)


def _write(path: Path, metrics: ProcessMetrics) -> None:
    """Replace the file as a whole.

    Raises:
        OSError: it cannot be written, or it is a device, a pipe or a folder: renaming would replace that.
    """
    target = path.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        raise OSError(0, "it is not a regular file")
    write_to_textfile(str(target), metrics.registry)


def _push(address: Address, metrics: ProcessMetrics, key: dict[str, str], is_ending: Callable[[], bool]) -> None:
    """Push to a Pushgateway.

    Raises:
        SourceError: it does not take the metrics, or not in time.
    """
    from rebalancer.usage.credentials import from_userinfo  # noqa: PLC0415  `requests` takes a while, and few push
    from rebalancer.usage.session import Session, plain  # noqa: PLC0415

    auth = from_userinfo(address)
    with Session(
        "the Pushgateway", _SECONDS, plain, auth=auth, tries=1, cures=("", ""), is_ending=is_ending
    ) as session:
        session.trust(None, "https://")

        def handler(
            url: str, method: str, timeout: float | None, headers: list[tuple[str, str]], data: bytes
        ) -> Callable[[], None]:
            del timeout  # that of the session counts, from the first try to the last
            return partial(_send, session, method, url, dict(headers), data)

        push_to_gateway(address.url, _JOB, metrics.registry, key, handler=handler)


def _send(session: "Session", method: str, url: str, headers: dict[str, str], data: bytes) -> None:
    session.tries(lambda: session.request(method, url, headers=headers, data=data))


def cluster_name(cluster: dict[str, str | None]) -> str:
    """Return a name for the cluster: its context, or in a pod the API server's host."""
    return cluster.get("context") or urlsplit(cluster.get("server") or "").hostname or "unknown"
