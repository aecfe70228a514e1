"""An API server that answers at random: what it does with a request and what it says of that are drawn apart.

It never says no to what it does: an answer that Kubernetes documents as a definite no (4xx, the two 500s of admission
and PDBs) is only ever given to a request that has no effect.  All else is allowed: it may do what was asked for and
say 500, do it much later, break the connection, or send half an answer.

Time is the program's own, and passes only when the server takes some or the program waits.  What the server does not
do is look after limits and PDBs: whatever is asked for in time goes.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request
from tests.fake_rules import covers

EVICTION = "*/eviction"
ANNOTATIONS = "descheduler.alpha.kubernetes.io"
TAKEN_OVER = "Eviction triggered evacuation"

Object = dict[str, Any]


@dataclass
class Time:
    """A clock that passes only when somebody waits."""

    now: float = 1000.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(0.0, seconds)


@dataclass
class Whims:
    """Lets a server do as it likes."""

    choice: random.Random
    server: FakeApiServer
    time: Time
    interrupt: Callable[[], object]  # sends the program a signal
    ends: float  # when the program may ask for nothing more
    went: list[str] = field(default_factory=list)  # UIDs of pods that have gone, or that another has taken over
    late: list[float] = field(default_factory=list)  # when evictions were asked for after the end
    asked: list[str] = field(default_factory=list)  # UIDs in the requests for evictions, in order
    _pending: list[Request] = field(default_factory=list)
    _interrupted: bool = False

    def begin(self) -> None:
        self.server.on("POST", EVICTION, self._evict)
        self.server.on("GET", "*/pods/*", self._look)
        self.server.on("GET", "/api/*", self._list, times=self.choice.choice((0, 0, 3)))

    def finish(self) -> None:
        """Do what is still pending: a server may take its time."""
        pending, self._pending = self._pending, []
        for request in pending:
            self._process(request)

    # What it does

    def _evict(self, request: Request) -> Reply:
        if self._interrupted or self.time.now > self.ends:
            self.late.append(self.time.now)
        self.asked.append(_wanted(request))
        self._pass_time()
        if self.choice.random() < 0.3:
            self.finish()
        reply = self.choice.choice((self._process, self._no, self._nonsense))(request)
        self._pass_time()
        if self.choice.random() < 0.06:
            self._interrupted = True
            self.interrupt()
        return reply

    def _nonsense(self, request: Request) -> Reply:
        what = self.choice.random()
        if what < 0.4:
            self._process(request)
        elif what < 0.6:
            self._pending.append(request)
        return self._nothing_certain()

    def _no(self, request: Request) -> Reply:
        reply = self.choice.choice(DEFINITE)()
        if TAKEN_OVER not in str(reply.body):
            return reply
        pod = self._pod(request)
        if pod is None or pod["metadata"]["uid"] != _wanted(request):
            return self._process(request)
        self.went.append(pod["metadata"]["uid"])
        return reply

    def _process(self, request: Request) -> Reply:
        pod = self._pod(request)
        if pod is None:
            return status(404, "pods not found")
        if pod["metadata"]["uid"] != _wanted(request):
            return status(409, "the UID in the precondition does not match")
        if "deletionTimestamp" not in pod["metadata"]:
            self.went.append(pod["metadata"]["uid"])
        self.choice.choice((self._remove, self._replace, self._terminate))(pod)
        return Reply(201, {"kind": "Status", "status": "Success"})

    def _remove(self, pod: Object) -> None:
        self.server.remove_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])

    def _replace(self, pod: Object) -> None:
        self.server.add({**pod, "metadata": {**pod["metadata"], "uid": f"after-{pod['metadata']['uid']}"}})

    def _terminate(self, pod: Object) -> None:
        self.server.add({**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    def _pod(self, request: Request) -> Object | None:
        reply = self.server.process(Request("GET", request.path.removesuffix("/eviction"), {}, {}, None, 0))
        return reply.body if reply.status == 200 else None

    # What it says

    def _look(self, _: Request) -> Reply | None:
        self._pass_time()
        if self.choice.random() < 0.6:
            return None
        return self.choice.choice((self._nothing_certain, lambda: status(403, "forbidden"), page))()

    def _list(self, _: Request) -> Reply | None:
        self._pass_time()
        return self.choice.choice((None, status(503, "starting"), status(429, "busy"), Reply(0, None, lost=True)))

    def _nothing_certain(self) -> Reply:
        return self.choice.choice(UNCERTAIN)()

    def _pass_time(self) -> None:
        if self.choice.random() < 0.25:
            self.time.sleep(self.choice.choice((0.5, 3, 12, 40)))


def _wanted(request: Request) -> str:
    return str(request.body["deleteOptions"]["preconditions"]["uid"])


def status(code: int, message: str, **details: Any) -> Reply:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": code, "details": details}
    return Reply(code, body)


def page(code: int = 200) -> Reply:
    return Reply(code, "<html>Please log in</html>", {"Location": "/login"})


def half(code: int, part: str) -> Reply:
    """Return an answer that breaks off in its headers or in its body."""
    reply = Reply(code, None, dripping=part)
    reply.over.set()
    return reply


def busy(wait: str) -> Reply:
    return Reply(429, {"kind": "Status", "message": "too many requests"}, {"Retry-After": wait})


UNCERTAIN: tuple[Callable[[], Reply], ...] = (
    *(lambda code=code: status(code, "etcdserver: request timed out") for code in (500, 502, 503, 504, 599)),
    *(lambda code=code: page(code) for code in (200, 204, 301, 302, 500, 503)),
    lambda: Reply(0, None, lost=True),
    lambda: half(201, "headers"),
    lambda: half(201, "body"),
    lambda: Reply(201, {"kind": "Pod"}),
    lambda: Reply(503, {"kind": "Status"}, {"Retry-After": "-5"}),
)

DEFINITE: tuple[Callable[[], Reply], ...] = (
    *(lambda code=code: status(code, "no") for code in (400, 401, 403, 405, 410, 413, 418, 422)),
    lambda: status(400, 'admission webhook "w" denied the request: no'),
    lambda: status(500, 'failed calling webhook "w": timeout'),
    lambda: status(500, "This pod has more than one PodDisruptionBudget"),
    lambda: status(409, "the object has been modified"),
    lambda: status(429, "no", causes=[{"reason": "DisruptionBudget", "message": "none left"}]),
    lambda: status(429, "busy", retryAfterSeconds=-3),
    *[lambda: status(429, f"{TAKEN_OVER} of a machine")] * 5,
    lambda: page(403),
    lambda: page(404),
    lambda: busy("1"),
    lambda: busy("Wed, 21 Oct 2015 07:28:00 GMT"),
    lambda: busy("0"),
)


_PLACES = {
    "Total": lambda _: "",
    "PerNode": lambda pod: pod["spec"]["nodeName"],
    "PerNamespace": lambda pod: pod["metadata"]["namespace"],
}


def exceeded(
    objects: Sequence[Object], limits: Mapping[str, Any], gone: Sequence[Object], before: Sequence[Object] = ()
) -> Iterator[str]:
    """Yield each limit and PDB that these pods exceed together.

    More may have been on their way `before` than is allowed now; then nothing else may go.
    """
    for name, place in _PLACES.items():
        limit = limits.get(f"maxNoOfPodsToEvict{name}")
        counts, earlier = Counter(map(place, gone)), Counter(map(place, before))
        if limit is not None and any(count > max(limit, earlier[where]) for where, count in counts.items()):
            yield f"{name}: {dict(counts)} went, where {limit} may"
    for pdb in (each for each in objects if each["kind"] == "PodDisruptionBudget"):
        count, earlier_ones = (sum(covers(pdb, pod) and _is_ready(pod) for pod in pods) for pods in (gone, before))
        if count > max(pdb["status"]["disruptionsAllowed"], earlier_ones):
            yield f"{count} pods of PDB {pdb['metadata']['name']}"


def _is_ready(pod: Object) -> bool:
    return bool(pod["status"]["containerStatuses"][0]["ready"])
