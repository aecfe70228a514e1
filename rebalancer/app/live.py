"""A live cluster: what is read of it, and how evictions and Events reach it."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry
from rebalancer.errors import ClusterError, CycleStopped
from rebalancer.eviction.verdict import Failed, Granted, Refused, Verdict
from rebalancer.kube.client import Client, Observe
from rebalancer.kube.config import Connection, connect
from rebalancer.kube.events import Events, note_of, reporting_instance
from rebalancer.kube.evictions import RETRY_FOR_SECONDS, Evictions
from rebalancer.kube.lists import read_list
from rebalancer.kube.patience import Deadline, Patience
from rebalancer.wire.collect import Collection, Folder

_LOG = logging.getLogger(__name__)

#: Where each kind is listed.
PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/pods",
    "PodDisruptionBudget": "/apis/policy/v1/poddisruptionbudgets",
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}

#: For Events at the end: of a cycle that was stopped; of any other, and still less than a pod has to end after SIGTERM.
_EVENTS_SECONDS_STOPPED = 5.0
_EVENTS_SECONDS = 25.0

#: How long a wait may go on after it is told to end.
_BLINK_SECONDS = 0.1

#: Says why nothing more may be asked for; empty while it may.  Asked before every eviction, from any thread.
Permit = Callable[[], str]

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


def open_cluster(kubeconfig: str | None, context: str | None, observe: Observe | None = None) -> LiveCluster:
    """Find the API server as kubectl does; no request is sent.

    Args:
        kubeconfig: the explicit file, if any.
        context: the explicit context, if any.
        observe: told of every request.

    Raises:
        NoCredentials: there is no way to one.
    """
    connection = connect(kubeconfig, context)
    return LiveCluster(connection, Client(connection, observe=observe) if observe else Client(connection))


def read_cluster(live: LiveCluster, kinds: Iterable[str]) -> Snapshot:
    """Read nodes, pods and these kinds anew; `now` is the time before the first request.

    Raises:
        ClusterError: the API server cannot be reached, or a permission is missing.
    """
    now = datetime.now(UTC)
    collection = Collection()
    for kind in sorted({"Node", "Pod", *kinds}):
        folder = _read_kind(live, collection, kind)
        _LOG.info("read %d objects of kind %s", len(folder.items), kind)
        collection.take(kind, folder)
    return collection.snapshot(now)


def _read_kind(live: LiveCluster, collection: Collection, kind: str) -> Folder[Any, Any]:
    try:
        return read_list(live.client, PATHS[kind], lambda: collection.folder(kind))
    except (ValueError, msgspec.MsgspecError) as error:
        raise no_list(live, kind, error) from error


def no_list(live: LiveCluster, kind: str, error: Exception) -> ClusterError:
    """Return what it means that an answer cannot be read as a list."""
    return ClusterError(
        f"{live.connection.server} does not answer like an API server: "
        f"GET {PATHS[kind]} gives no list of objects ({error}). Look at the server's address in the kubeconfig."
    )


def always() -> str:
    """Permit everything: a run that nobody else takes turns with."""
    return ""


class LiveSink:
    """Evicts through the API server until told to stop or out of time.

    Args:
        client: the API server.
        grace_period_seconds: for all pods; None leaves each pod its own.
        seconds: from now, after which nothing more is asked for.
        permit: asked before every eviction.

    Attributes:
        is_denied: whether some pod that the cycle let go was not evicted.
    """

    def __init__(
        self, client: Client, grace_period_seconds: int | None, seconds: float, permit: Permit = always
    ) -> None:
        self.is_denied = False
        self._permit = permit
        self._stop = threading.Event()
        self._deadline = Deadline.after(seconds)
        self._seconds = seconds
        self._signal = ""
        self._evictions = Evictions(
            client,
            grace_period_seconds=grace_period_seconds,
            patience=Patience(
                seconds=RETRY_FOR_SECONDS,
                # The server has answered in this run: if nobody is there now, it is being started again.
                tries_unconnected=sys.maxsize,
                stop=self._stop,
                sleep=self._sleep,
            ),
            deadline=self._deadline,
        )

    def stop(self, signal: str) -> None:
        """Ask for nothing more once the request in flight is finished."""
        self._signal = signal
        self._stop.set()

    def evict(self, pod: Pod, profile: str, strategy: str, because: str) -> Verdict:
        """Evict a pod.

        Raises:
            CycleStopped: a signal came, the deadline has passed, or the permit ended.
        """
        if self._stop.is_set():
            raise CycleStopped(f"stopped by {self._signal}")
        if not self._deadline.left():
            raise CycleStopped(f"the deadline of {self._seconds:g} s after the snapshot has passed")
        if reason := self._permit():
            raise CycleStopped(reason)
        verdict = self._evictions.evict(
            pod.namespace, pod.name, pod.uid, profile=profile, strategy=strategy, reason=because
        )
        self.is_denied = self.is_denied or not verdict.granted
        return verdict

    def _sleep(self, seconds: float) -> None:
        # Not `Event.wait`: the signal's handler runs in this thread, and could wait for ever for the lock held here.
        until = Deadline.after(seconds)
        while until.left() and not self._stop.is_set():
            time.sleep(min(_BLINK_SECONDS, until.left()))


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

    def close(self, *, stopped: bool) -> str:
        """Deliver what waits, not for long if the cycle was stopped; return a warning if Events were not delivered."""
        lost = self._events.close(_EVENTS_SECONDS_STOPPED if stopped else _EVENTS_SECONDS)
        return f"{lost} Events were not delivered: {self._events.problem}" if lost else ""

    def _publish(self, entry: Entry, type_: str, reason: str, note: str) -> None:
        pod = entry.pod
        self._events.publish(pod.namespace, pod.name, pod.uid, type_=type_, reason=reason, note=note)
