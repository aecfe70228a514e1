"""Reports whether a policy file that was read again could be used: to metrics, health and Events."""

import socket
from pathlib import Path

from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.events import Events, reporting_instance
from rebalancer.run.live import LiveCluster
from rebalancer.run.telemetry import Telemetry

_CLOSE_SECONDS = 5.0


class PolicyReporter:
    """Reports the problems that a `PolicyFile` found."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._events: Events | None = None
        self._namespace = ""

    def open(self, cluster: LiveCluster, namespace: str) -> None:
        """Write Events from now on: about this pod; outside a pod in `namespace`, under this host's name."""
        self._events = Events(cluster.client, reporting_instance())
        self._namespace = _own_namespace(SERVICE_ACCOUNT) if cluster.connection.in_cluster else namespace

    def close(self) -> None:
        """Deliver the Events that wait."""
        if self._events is not None:
            self._events.close(_CLOSE_SECONDS)

    def report(self, problem: str) -> None:
        """Report what is wrong with the policy file, empty if nothing is; the last good policy stays in force."""
        self._telemetry.metrics.policy_read(valid=not problem)
        self._telemetry.health.policy_read(problem)
        if problem and self._events is not None:
            note = f"the last good policy stays in force: {problem}"
            host = socket.gethostname()
            self._events.publish(
                self._namespace, host, "", type_="Warning", reason="PolicyInvalid", note=note, action="Reload"
            )


def _own_namespace(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
