"""A live cluster: what is read of it, and how evictions and Events reach it."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from rebalancer.engine.ledger import Entry
from rebalancer.errors import CycleStopped
from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection, connect
from rebalancer.kube.events import Events, note_of, reporting_instance
from rebalancer.kube.evictions import RETRY_FOR_SECONDS, Evictions
from rebalancer.kube.lists import read_list
from rebalancer.kube.patience import Deadline, Patience
from rebalancer.model.objects import Pod, Snapshot
from rebalancer.model.verdict import Failed, Granted, Refused, Verdict
from rebalancer.wire.collect import Collection

#: Where each kind is listed.
PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}

_EVENTS_SECONDS = 5.0
_LIMITS = {"TotalLimit": "total", "NodeLimit": "node", "NamespaceLimit": "namespace"}


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A way to an API server."""

    connection: Connection
    client: Client

    @property
    def description(self) -> dict[str, str | None]:
        """Context (None in a pod) and server, as reports name them."""
        return {"context": self.connection.context, "server": self.connection.server}


def open_cluster(kubeconfig: str | None, context: str | None) -> LiveCluster:
    """Find the API server as kubectl does; no request is sent.

    Raises:
        NoCredentials: there is no way to one.
    """
    connection = connect(kubeconfig, context)
    return LiveCluster(connection, Client(connection))


def read_cluster(live: LiveCluster, kinds: Iterable[str]) -> Snapshot:
    """Read nodes, pods and these kinds; `now` is the time before the first request.

    Raises:
        ClusterError: the API server cannot be reached, or a permission is missing.
    """
    now = datetime.now(UTC)
    collection = Collection()
    for kind in sorted({"Node", "Pod", *kinds}):
        folder = read_list(live.client, PATHS[kind], lambda kind=kind: collection.folder(kind))  # type: ignore[misc]  # bound early
        collection.take(kind, folder)
    return collection.snapshot(now)


class LiveSink:
    """Evicts through the API server until told to stop or out of time."""

    def __init__(self, client: Client, grace_period_seconds: int | None, seconds: float) -> None:
        self._stop = threading.Event()
        self._deadline = Deadline.after(seconds)
        self._seconds = seconds
        self._signal = ""
        self._evictions = Evictions(
            client,
            grace_period_seconds=grace_period_seconds,
            patience=Patience(seconds=RETRY_FOR_SECONDS, stop=self._stop),
            deadline=self._deadline,
        )

    def stop(self, signal: str) -> None:
        """Ask for nothing more once the request in flight is finished."""
        self._signal = signal
        self._stop.set()

    def evict(self, pod: Pod, profile: str, strategy: str, because: str) -> Verdict:
        """Evict a pod.

        Raises:
            CycleStopped: a signal came, or the deadline has passed.
        """
        if self._stop.is_set():
            raise CycleStopped(f"stopped by {self._signal}")
        if not self._deadline.left():
            raise CycleStopped(f"the deadline of {self._seconds:g} s after the snapshot has passed")
        return self._evictions.evict(
            pod.namespace, pod.name, pod.uid, profile=profile, strategy=strategy, reason=because
        )


class EventLog:
    """Writes Kubernetes Events about what becomes of pods (the reference's fields; our reason in the note)."""

    def __init__(self, client: Client, *, failures: bool) -> None:
        self._events = Events(client, reporting_instance())
        self._failures = failures

    def observe(self, entry: Entry) -> None:
        """Write the Event of a ledger entry, if it is worth one."""
        match entry.verdict:
            case Granted():
                self._publish(entry, "Normal", entry.strategy, note_of(entry.pod.node, entry.because))
            case Refused(by, reason) if self._failures and (by in _LIMITS or by in ("PDB", "Webhook", "Gone")):
                error = f"{_LIMITS[by]} eviction limit exceeded ({reason})" if by in _LIMITS else reason
                self._publish(entry, "Warning", "EvictionFailed", note_of(entry.pod.node, entry.because, error))
            case Failed(error) if self._failures:
                self._publish(entry, "Warning", "EvictionFailed", note_of(entry.pod.node, entry.because, error))

    def close(self) -> str:
        """Deliver what waits, for five seconds at most; return a warning if some Events were not delivered."""
        lost = self._events.close(_EVENTS_SECONDS)
        return f"{lost} Events were not delivered: {self._events.problem}" if lost else ""

    def _publish(self, entry: Entry, type_: str, reason: str, note: str) -> None:
        pod = entry.pod
        self._events.publish(pod.namespace, pod.name, pod.uid, type_=type_, reason=reason, note=note)
