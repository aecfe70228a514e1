"""A live cluster: the client that speaks to it, and how evictions and Events reach it."""

import logging
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from rebalancer.clock import Clock, boottime
from rebalancer.cluster.pod import Pod
from rebalancer.engine.closures import Closures
from rebalancer.engine.gate import Recheck
from rebalancer.engine.ledger import Entry
from rebalancer.engine.restarts import Restarted
from rebalancer.errors import CycleStopped
from rebalancer.eviction.causes import Cause, Code
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown, Verdict
from rebalancer.kube.client import LONGEST_READ_SECONDS, Client, Observe
from rebalancer.kube.config import Overrides, connect, find
from rebalancer.kube.events import Event, Events, note_of, reporting_instance
from rebalancer.kube.evictions import RETRY_FOR_SECONDS, Evictions
from rebalancer.kube.rollouts import Rollouts
from rebalancer.kube.tries import Halt, RetryPolicy
from rebalancer.kube.wire.collect import read_pod
from rebalancer.report.words import text
from rebalancer.run.options import ClientOptions, LeaseOptions

_LOG = logging.getLogger(__name__)

#: Time for Events at the end: after a signal or the deadline, and otherwise.  Both are shorter than the 30 s that a pod
#: has to end after SIGTERM.
_EVENTS_SECONDS_HALTED = 3.0
_EVENTS_SECONDS = 25.0
#: The refusals that get an Event, in the descheduler's words, and the cause in ours.
_TOLD = {
    Code.TOTAL_LIMIT: "total eviction limit exceeded ({})",
    Code.NODE_LIMIT: "node eviction limit exceeded ({})",
    Code.NAMESPACE_LIMIT: "namespace eviction limit exceeded ({})",
    **dict.fromkeys((Code.PDB, Code.WEBHOOK, Code.GONE, Code.IN_PROGRESS), "{}"),
}


def new_run() -> str:
    """Return a name that only this run has and that is valid as the value of a taint."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def open_cluster(
    client: ClientOptions,
    retry_policy: RetryPolicy | None = None,
    observe: Observe = lambda _method, _path, _status: None,
) -> Client:
    """Find the API server in the same order as kubectl; no request is sent.  `observe` is called with every request."""
    overrides = Overrides(client.as_user, client.as_group, client.insecure_skip_tls_verify, client.exec_timeout)
    connection = connect(client.kubeconfig, client.context, overrides=overrides)
    seconds = client.request_timeout or LONGEST_READ_SECONDS
    return Client(connection, request_timeout=seconds, retry_policy=retry_policy or RetryPolicy(), observe=observe)


def described(client: Client) -> dict[str, str | None]:
    """Return context (None in a pod) and server, as reports name them."""
    return {"context": client.connection.context, "server": client.connection.server}


def contexts(kubeconfig: str | None) -> Iterable[str]:
    """Return the names of the contexts of the kubeconfig that kubectl would use."""
    found = find(kubeconfig, os.environ)
    return found.contexts if found else ()


class LiveSink:
    """Evicts through the API server until told to halt, or restarts rollouts; several threads may share it."""

    def __init__(
        self,
        client: Client,
        grace_period_seconds: int | None,
        halt: Halt,
        restarted: Restarted = lambda _: "",
        *,
        is_shared: bool = False,
    ) -> None:
        self.client, self.halt, self.restarted = client, halt, restarted
        self.closures = Closures()  # the namespaces where no further pod is evicted
        self._learning = Lock()
        #: Waits for so many seconds, or until a signal comes.
        self.sleep: Callable[[float], object] = client.retry_policy.sleep or halt.signalled.wait
        retry_policy = replace(
            client.retry_policy,
            seconds=RETRY_FOR_SECONDS,
            # The server has answered in this run: if it is unreachable now, it is probably restarting.
            tries_unconnected=sys.maxsize,
            stop=halt.signalled,
            sleep=self.sleep,
        )
        self._evictions = Evictions(client, retry_policy, halt, grace_period_seconds, is_shared=is_shared)

    def evict(self, pod: Pod, profile: str, strategy: str, because: Cause, recheck: Recheck) -> Verdict:
        """Evict a pod; raise CycleStopped once the run is told to halt, or where no eviction succeeds."""
        if reason := self.halt.reason or self.closures.ended:
            raise CycleStopped(reason)
        if name := self.restarted(pod):
            return Rollouts(self.client, self.halt).restart(pod, name, recheck)
        with self._learning:
            refusal = self.closures.refusal(pod)
        if refusal:
            return refusal

        def read_again(raw: bytes) -> Verdict | str:
            try:
                fresh = read_pod(raw)
            except ValueError as error:
                return Failed(f"the pod has changed, and cannot be read: {error}")
            return recheck(fresh) or fresh.resource_version

        who = (pod.namespace, pod.name, pod.uid, pod.resource_version)
        verdict = self._evictions.evict(*who, read_again, profile=profile, strategy=strategy, reason=text(because))
        with self._learning:
            self.closures.heard(pod, verdict)
        return verdict


class EventLog:
    """Writes Kubernetes Events about evictions (the descheduler's fields; our reason in the note)."""

    def __init__(self, client: Client, halt: Halt, *, failures: bool, clock: Clock = boottime) -> None:
        self._events = Events(client, reporting_instance(), clock=clock)
        self._halt = halt
        self._failures = failures

    def observe(self, entry: Entry) -> None:
        """Write the Event of a ledger entry, if it gets one."""
        match entry.verdict:
            case Granted(restarted=name):
                self._publish(entry, "Normal", entry.strategy, restarted=name)
            case Unknown(error):
                self._publish(entry, "Warning", "EvictionUnknown", error)
            case Refused(cause) if self._failures and cause.code in _TOLD:
                self._publish(entry, "Warning", "EvictionFailed", _TOLD[cause.code].format(text(cause)))
            case Failed(error) if self._failures:
                self._publish(entry, "Warning", "EvictionFailed", error)

    def tell(self, lease: LeaseOptions, reason: str, note: str) -> None:
        """Write an Event about the runs themselves, that is, about their Lease."""
        about = Event(lease.resource_namespace, lease.resource_name, "", "Warning", reason, note, "Balance")
        self._events.publish(about)

    def close(self) -> str:
        """Deliver the Events that wait, within 3 s once the run is told to end; return a warning about lost ones."""
        lost = self._events.close(_EVENTS_SECONDS, lambda: bool(self._halt.reason), _EVENTS_SECONDS_HALTED)
        return f"{lost} Events were not delivered: {self._events.problem}" if lost else ""

    def _publish(self, entry: Entry, type_: str, reason: str, error: str = "", restarted: str = "") -> None:
        pod, note = entry.pod, note_of(entry.pod.node, text(entry.because), error, restarted)
        self._events.publish(Event(pod.namespace, pod.name, pod.uid, type_, reason, note))


def log_verdict(entry: Entry) -> None:
    """Write a verdict of a live run to the log."""
    what = f"{entry.pod.namespace}/{entry.pod.name} on {entry.pod.node} ({entry.strategy}: {text(entry.because)})"
    match entry.verdict:
        case Granted(restarted=name):
            _LOG.info("restarted the rollout of %s for %s" if name else "%sevicted %s", name, what)
        case Refused(cause):
            _LOG.debug("refused by %s (%s): %s", cause.code.value, text(cause), what)
        case Unknown(error):
            _LOG.warning("perhaps evicted: %s: %s", what, error)
        case Failed(error):
            _LOG.warning("not evicted: %s: %s", what, error)
