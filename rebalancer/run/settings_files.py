"""Settings files, read again when their content changes; if the new content is bad, the old one stays in force."""

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from rebalancer.errors import UsageError
from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.events import Event, Events, reporting_instance
from rebalancer.run.live import LiveCluster
from rebalancer.run.telemetry import Telemetry

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


class Watched(Generic[T]):
    """A file by name, and what it means.

    A change is seen by the content, not by the time of the file: a ConfigMap's file is a symbolic link that is swapped.
    Standard input (`-`) is read once.  `report` hears after each reading what is wrong; an empty text if nothing is.
    The `value` is what the text in force means.
    """

    def __init__(
        self, what: str, name: str, read: Callable[[str], str], parse: Callable[[str], T], report: Callable[[str], None]
    ) -> None:
        self._what = what
        self._name = name
        self._read = read
        self._parse = parse
        self._report = report
        self._text = read(name)
        self._problem = ""
        self.value = parse(self._text)
        report("")

    def refresh(self) -> None:
        """Read the file again if its content has changed; warn once of a bad one."""
        if self._name == "-":
            return
        try:
            text = self._read(self._name)
            if text == self._text and not self._problem:
                return
            self.value = self._parse(text)
        except UsageError as error:
            if (problem := str(error)) != self._problem:
                self._problem = problem
                _LOG.warning("the last good %s stays in force: %s", self._what, problem)
                self._report(problem)
            return
        if text != self._text:
            _LOG.warning("the %s %s has changed: the new one is in force", self._what, self._name)
        self._text = text
        self._problem = ""
        self._report("")


class PolicyReporter:
    """Reports whether a policy file that was read again could be used: to metrics, health and Events."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._events: Events | None = None
        self._namespace = ""

    def open(self, cluster: LiveCluster, namespace: str) -> None:
        """Write Events from now on: about this pod; outside a pod in `namespace`, under this host's name."""
        self._events = Events(cluster.client, reporting_instance())
        self._namespace = namespace
        if cluster.connection.in_cluster:
            self._namespace = "default"
            with suppress(OSError):
                self._namespace = (SERVICE_ACCOUNT / "namespace").read_text().strip() or "default"

    def close(self) -> None:
        """Deliver the Events that wait."""
        if self._events is not None:
            self._events.close(_CLOSE_SECONDS)

    def report(self, problem: str) -> None:
        """Report what is wrong with the policy file, empty if nothing is; the last good policy stays in force."""
        self._telemetry.metrics.policy_read(valid=not problem)
        self._telemetry.health.policy_problem = problem
        if problem and self._events is not None:
            note = f"the last good policy stays in force: {problem}"
            host = socket.gethostname()
            self._events.publish(Event(self._namespace, host, "", "Warning", "PolicyInvalid", note, "Reload"))
