"""Events about pods, delivered by a thread of their own while the run goes on."""

import json
import logging
import math
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus

from rebalancer.clock import Clock, boottime
from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.tries import Deadline, RetryPolicy
from rebalancer.untrusted.address import without_userinfo

logger = logging.getLogger(__name__)

CONTROLLER = "kube-rebalancer"

#: The API's limits: of a note in bytes, of the reporting instance, a name and a reason in characters.
_NOTE_LIMIT = 1024
_INSTANCE_LIMIT = 128
_NAME_LIMIT = 253
_REASON_LIMIT = 128

#: Events that may wait for delivery; more are dropped, and counted.
_QUEUE_LENGTH = 10_000

#: How often `close` checks whether it has to hurry, in seconds.
_BLINK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a pod.

    Attributes:
        type_: `Normal` or `Warning`.
        reason: the strategy, or `EvictionFailed`.
        time: nanoseconds since 1970.
    """

    namespace: str
    pod: str
    uid: str
    type_: str
    reason: str
    note: str
    action: str = "Descheduled"
    time: int = field(default_factory=time.time_ns)


def reporting_instance(hostname: str | None = None) -> str:
    """Return who reports, as the descheduler spells it: the controller, a hyphen and the host's name."""
    return f"{CONTROLLER}-{hostname or socket.gethostname()}"[:_INSTANCE_LIMIT]


def note_of(node: str, because: str, error: str = "", restarted: str = "") -> str:
    """Return the note of an eviction from a node: the descheduler's words, then our reason, or why it failed.

    If the rollout of a Deployment is restarted instead, its name is given.
    """
    if restarted:
        return f"the rollout of Deployment {restarted} is restarted, so that its pod leaves {node}: {because}"
    outcome = f" failed: {error}" if error else ""
    reason = f": {because}" if because and not error else ""
    return f"pod eviction from {node} node by sigs.k8s.io/descheduler{outcome}{reason}"


class Events:
    """Publishes Events; never delays the run, and never makes it fail.

    Args:
        reporting_instance: who reports; see `reporting_instance`.
        retry_policy: how one Event is tried again; for 5 s when None.  Its `stop` is not used.

    Attributes:
        problem: why the first undelivered Event was not delivered; empty when all were.
    """

    def __init__(
        self,
        client: Client,
        reporting_instance: str,
        *,
        retry_policy: RetryPolicy | None = None,
        clock: Clock = boottime,
    ) -> None:
        self.problem = ""
        self._client = client
        self._reporting_instance = reporting_instance
        self._clock = clock
        self._over = threading.Event()
        self._retry_policy = replace(retry_policy or RetryPolicy(seconds=5.0), stop=self._over)
        self._deadline: Deadline | None = None
        self._waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._published = 0
        self._delivered = 0
        self._worker = threading.Thread(target=self._deliver_all, name="events", daemon=True)
        self._worker.start()

    def publish(self, event: Event) -> None:
        """Hand one Event over for delivery."""
        self._published += 1
        if self._waiting.qsize() < _QUEUE_LENGTH:
            self._waiting.put(event)
        else:
            self._note_problem("too many Events were waiting for delivery")

    def close(
        self, seconds: float, hurried: Callable[[], bool] = lambda: False, seconds_hurried: float = math.inf
    ) -> int:
        """Deliver the waiting Events within so many seconds, and return how many Events were not delivered.

        From the moment when `hurried` returns True, which is called again and again, `seconds_hurried` are left.
        """
        self._deadline = end = Deadline.after(seconds, self._clock)
        self._waiting.put(None)
        while self._worker.is_alive() and end.left():
            if hurried():  # each time: of two ends the sooner one counts
                self._deadline = end = Deadline.after(seconds_hurried, self._clock).or_sooner(end)
            self._worker.join(min(_BLINK_SECONDS, end.left()))
        self._over.set()
        undelivered = self._published - self._delivered
        if undelivered:
            self._note_problem("there was no time left")
        return undelivered

    def _deliver_all(self) -> None:
        while (event := self._waiting.get()) is not None and not self._over.is_set():
            try:
                self._retry_policy.call(self._deadline, self._deliver, event)
                self._delivered += 1
            except ClusterError as error:
                if self._deadline is None or self._deadline.left():  # else `close` notes that there was no time left
                    self._note_problem(str(error))

    def _deliver(self, event: Event) -> None:
        path = path_of("apis", "events.k8s.io", "v1", "namespaces", event.namespace, "events")
        body = json.dumps(body_of(event, self._reporting_instance)).encode()
        answer = self._client.write("POST", path, body, deadline=self._deadline)
        # A conflict: the server already has the Event; its answer to an earlier try was lost.
        if answer.status != HTTPStatus.CONFLICT:
            answer.demanded()

    def _note_problem(self, problem: str) -> None:
        if not self.problem:
            self.problem = problem
            logger.warning("an Event was not delivered: %s", problem)


def body_of(event: Event, reporting_instance: str) -> dict[str, object]:
    """Return an Event as events.k8s.io/v1 wants it, cut to that API's limits."""
    suffix = f".{event.time:x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event.pod[: _NAME_LIMIT - len(suffix)] + suffix, "namespace": event.namespace},
        "eventTime": _micro_time(event.time),
        "reportingController": CONTROLLER,
        "reportingInstance": reporting_instance[:_INSTANCE_LIMIT],
        "action": event.action,
        "reason": event.reason[:_REASON_LIMIT],
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": event.namespace,
            "name": event.pod,
            "uid": event.uid,
        },
        "note": _cut_bytes(without_userinfo(event.note), _NOTE_LIMIT),
        "type": event.type_,
    }


def _micro_time(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{nanoseconds % 10**9 // 1000:06d}Z"
    )


def _cut_bytes(text: str, limit: int) -> str:
    whole = text.encode()
    if len(whole) <= limit:
        return text
    return whole[: limit - len("…".encode())].decode(errors="ignore") + "…"
