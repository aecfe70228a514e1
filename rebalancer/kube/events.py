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
from functools import partial
from http import HTTPStatus

from rebalancer.clock import Clock, boottime
from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.tries import Deadline, RetryPolicy
from rebalancer.untrusted.address import without_userinfo

logger = logging.getLogger(__name__)
CONTROLLER = "kube-rebalancer"
#: The API's limits: of a note in bytes, of a name, and of the reporting instance and a reason in characters.
_NOTE_LIMIT, _NAME_LIMIT, _WORD_LIMIT = 1024, 253, 128
_BLINK_SECONDS = 0.1  # how often `close` checks whether it has to hurry, in seconds


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a pod."""

    namespace: str
    pod: str
    uid: str
    type_: str  # `Normal` or `Warning`
    reason: str  # the strategy, or `EvictionFailed`
    note: str
    action: str = "Descheduled"
    time: int = field(default_factory=time.time_ns)  # nanoseconds since 1970


def reporting_instance(hostname: str | None = None) -> str:
    """Return who reports, as the descheduler spells it: the controller, a hyphen and the host's name."""
    return f"{CONTROLLER}-{hostname or socket.gethostname()}"


def note_of(node: str, because: str, error: str = "", restarted: str = "") -> str:
    """Return the note of an eviction or a restarted rollout: the descheduler's words, then why, or why it failed."""
    if restarted:
        return f"the rollout of Deployment {restarted} is restarted, so that its pod leaves {node}: {because}"
    why = f" failed: {error}" if error else f": {because}" if because else ""
    return f"pod eviction from {node} node by sigs.k8s.io/descheduler{why}"


class Events:
    """Publishes Events; never delays the run, and never makes it fail.  One Event is tried again for 5 s by default."""

    def __init__(
        self, client: Client, reporter: str, *, retry_policy: RetryPolicy | None = None, clock: Clock = boottime
    ) -> None:
        self.problem = ""  # why the first undelivered Event was not delivered; empty when all were
        self._client = client
        self._reporter = reporter
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
        self._waiting.put(event)

    def close(
        self, seconds: float, hurried: Callable[[], bool] = lambda: False, seconds_hurried: float = math.inf
    ) -> int:
        """Deliver the waiting Events in time, or sooner once it is hurried; return how many were not delivered."""
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
                self._retry_policy.call(self._deadline, partial(self._deliver, event))
                self._delivered += 1
            except ClusterError as error:
                if self._deadline is None or self._deadline.left():  # else `close` notes that there was no time left
                    self._note_problem(str(error))

    def _deliver(self, event: Event) -> None:
        path = path_of("apis", "events.k8s.io", "v1", "namespaces", event.namespace, "events")
        body = json.dumps(body_of(event, self._reporter)).encode()
        answer = self._client.write("POST", path, body, deadline=self._deadline)
        # A conflict: the server already has the Event; its answer to an earlier try was lost.
        if answer.status != HTTPStatus.CONFLICT:
            answer.demanded()

    def _note_problem(self, problem: str) -> None:
        if not self.problem:
            self.problem = problem
            logger.warning("an Event was not delivered: %s", problem)


def body_of(event: Event, reporter: str) -> dict[str, object]:
    """Return an Event as events.k8s.io/v1 wants it, cut to that API's limits."""
    suffix, at = f".{event.time:x}", datetime.fromtimestamp(event.time // 10**9, UTC)
    note = without_userinfo(event.note)
    whole = note.encode()
    pod = {"namespace": event.namespace, "name": event.pod, "uid": event.uid}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": event.pod[: _NAME_LIMIT - len(suffix)] + suffix, "namespace": event.namespace},
        "eventTime": f"{at:%Y-%m-%dT%H:%M:%S}.{event.time % 10**9 // 1000:06d}Z",
        "reportingController": CONTROLLER,
        "reportingInstance": reporter[:_WORD_LIMIT],
        "action": event.action,
        "reason": event.reason[:_WORD_LIMIT],
        "regarding": {"apiVersion": "v1", "kind": "Pod", **pod},
        "note": note if len(whole) <= _NOTE_LIMIT else f"{whole[: _NOTE_LIMIT - 3].decode(errors='ignore')}…",
        "type": event.type_,
    }
