"""What becomes known of a policy file that is read again: to metrics, health and Events."""

import socket
from pathlib import Path

from rebalancer.app.live import LiveCluster
from rebalancer.app.telemetry import Telemetry
from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.events import Events, reporting_instance

_CLOSE_SECONDS = 5.0


class PolicyNews:
    """Takes what a `PolicyFile` tells."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._events: Events | None = None
        self._namespace = ""

    def open(self, cluster: LiveCluster, namespace: str) -> None:
        """Write Events from now on; about this pod, or in `namespace` under this host's name outside a pod."""
        self._events = Events(cluster.client, reporting_instance())
        self._namespace = _own_namespace(SERVICE_ACCOUNT) if cluster.connection.in_cluster else namespace

    def close(self) -> None:
        """Deliver what waits."""
        if self._events is not None:
            self._events.close(_CLOSE_SECONDS)

    def tell(self, problem: str) -> None:
        """Take down what is wrong with the policy file, nothing if empty; the policy of before stays in force."""
        self._telemetry.metrics.policy_read(valid=not problem)
        self._telemetry.health.policy_read(problem)
        if problem and self._events is not None:
            note = f"the policy of before stays in force: {problem}"
            host = socket.gethostname()
            self._events.publish(
                self._namespace, host, "", type_="Warning", reason="PolicyInvalid", note=note, action="Reload"
            )


def _own_namespace(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
