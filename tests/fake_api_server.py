"""A small API server for tests: real HTTP over loopback, in threads of its own.

    with FakeApiServer(objects=[...]) as server:
        run("--kubeconfig", server.kubeconfig(tmp_path))

    server.pod_names()            # what is left: ["default/a", ...]
    server.evicted                # ["default/b", ...] in the order of the grants
    server.events                 # bodies of the Events that were posted
    server.requests               # every request: method, path, query, body, headers
    server.sent("POST", "*/eviction")

It serves any object given to it, as lists (with limit and continue: the pages show the state of the first one)
and alone; the kinds that the program lists also when there is none.
Of selectors only `key in (a,b)` for labels is honoured.  An eviction follows the real server's rules
(UID precondition, PDBs, two PDBs) and takes the pod away at once.  A JSON patch changes any object.  Access reviews
allow what `forbid` does not name.

What goes wrong is programmed, `times` times (None: for ever), on a path pattern (`*` matches anything).  What was
programmed first comes first: two failures once each are for two requests.

    server.fail("GET", "/api/v1/pods", status=503, headers={"Retry-After": "1"}, times=2)
    server.fail("POST", "*/eviction", status=400, message='admission webhook "w" denied the request: no')
    server.reset("POST", "*/eviction")                   # the connection breaks before the server does anything
    server.reset("POST", "*/eviction", processed=True)   # ... or after it has done everything
    release = server.stall("GET", "/api/v1/pods")        # no answer until `release.set()`
    server.expire_continue_tokens(times=1)               # 410
    server.forbid("list", "pods")                        # 403 in the words of RBAC
    server.token = "new"                                 # 401 for every other token
    server.on("POST", "*/eviction", lambda request: server.add(pod))  # the cluster changes underneath
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from rebalancer.kube.answers import verb_and_resource
from rebalancer.kube.wire.pages import PATHS
from tests.fake_http import HttpServer, Reply, Request, failure
from tests.fake_kinds import RESOURCES, path_of
from tests.fake_leases import MAPS, PATH, FakeLeases
from tests.fake_rules import FailedError, covers, patched, spend

Object = dict[str, Any]

#: How long a stalled answer waits at most, should a test forget it.
LONGEST_STALL_SECONDS = 120.0

#: A key and its self-signed certificate for 127.0.0.1, for `FakeApiServer(tls=True)`; both are for tests alone.
CERTIFICATE = Path(__file__).parent / "loopback.pem"

#: Says in a kubeconfig that the token may go over plain http: this server is on the loopback interface.
_PLAIN_HTTP = {"name": "rebalancer", "extension": {"allowTokenOverHTTP": True}}
_NAMESPACED = re.compile(r"(/.+/)namespaces/([^/]+)/([^/]+)")


@dataclass
class Rule:
    """Something programmed for requests that match."""

    method: str
    pattern: str
    act: Callable[[Request], Reply | None]
    left: float
    when: Callable[[Request], bool]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def takes(self, request: Request) -> bool:
        if request.method != self.method or not fnmatchcase(request.path, self.pattern) or not self.when(request):
            return False
        with self.lock:
            self.left -= 1
            return self.left >= 0


class FakeApiServer:
    def __init__(
        self,
        objects: Iterable[Object] = (),
        *,
        tls: bool = False,
        asks_for_certificate: bool = False,
    ) -> None:
        self.token = "the-token"
        self.requests: list[Request] = []
        self.events: list[Object] = []
        self.evicted: list[str] = []
        self.leases = FakeLeases()
        self._objects: dict[str, list[Object]] = {path_of(kind): [] for kind in PATHS}
        self._kinds = {path_of(kind): kind for kind in PATHS}
        self._version = 1000
        self._lists: dict[int, list[Object]] = {}
        self._rules: list[Rule] = []
        self._stalled: list[threading.Event] = []
        self._forbidden: set[tuple[str, str]] = set()
        self._lock = threading.RLock()
        self._http = HttpServer(self.reply, CERTIFICATE if tls else None, asks=asks_for_certificate)
        for each in objects:
            self.add(each)

    def __enter__(self) -> Self:
        self._http.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        for release in self._stalled:
            release.set()
        self._http.__exit__()

    def stop(self) -> None:
        """Be gone, as a server that is switched off."""
        self._http.stop()

    # The cluster

    @property
    def url(self) -> str:
        return self._http.url

    def kubeconfig(self, folder: Path, *, user: Object | None = None, context: str = "fake", **cluster: object) -> Path:
        """Write a kubeconfig for this server; `user` replaces the token, and `cluster` sets fields of the cluster."""
        path = folder / "kubeconfig"
        here = {"server": self.url, "extensions": [_PLAIN_HTTP], **cluster}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "contexts": [{"name": context, "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": here}],
            "users": [{"name": "me", "user": user or {"token": self.token}}],
        }
        path.write_text(json.dumps(document))  # JSON is YAML
        return path

    def add(self, *objects: Object) -> None:
        """Add objects, or replace those of their kind, namespace and name; a pod gets a new resourceVersion."""
        for added in objects:
            version, kind, each = added.get("apiVersion", "v1"), added["kind"], added
            path = f"/{'apis' if '/' in version else 'api'}/{version}/{RESOURCES[kind][1]}"
            with self._lock:
                self._kinds[path] = kind
                if kind == "Pod":
                    self._version += 1
                    each = {**each, "metadata": {**each["metadata"], "resourceVersion": str(self._version)}}
                kept = [other for other in self._objects.get(path, []) if _key(other) != _key(each)]
                self._objects[path] = sorted([*kept, each], key=_key)

    def remove_pod(self, namespace: str, name: str) -> None:
        with self._lock:
            pods = self._objects["/api/v1/pods"]
            pods[:] = [pod for pod in pods if _key(pod) != (namespace, name)]

    def remove_node(self, name: str) -> None:
        with self._lock:
            nodes = self._objects["/api/v1/nodes"]
            nodes[:] = [node for node in nodes if _key(node) != ("", name)]

    def node(self, name: str) -> Object:
        with self._lock:
            return next(node for node in self._objects["/api/v1/nodes"] if _key(node) == ("", name))

    def pod(self, name: str, namespace: str = "default") -> Object:
        with self._lock:
            return next(pod for pod in self._objects["/api/v1/pods"] if _key(pod) == (namespace, name))

    def pod_names(self) -> list[str]:
        with self._lock:
            return ["/".join(_key(pod)) for pod in self._objects["/api/v1/pods"]]

    def sent(self, method: str, pattern: str) -> list[Request]:
        with self._lock:
            return [each for each in self.requests if each.method == method and fnmatchcase(each.path, pattern)]

    # What goes wrong

    def on(
        self,
        method: str,
        pattern: str,
        act: Callable[[Request], object],
        *,
        times: float | None = None,
        when: Callable[[Request], bool] = lambda _: True,
    ) -> None:
        """Call `act` with each matching request; a Reply from it is the answer, else the request is served."""
        with self._lock:
            self._rules.append(
                Rule(method, pattern, act, float("inf") if times is None else times, when)  # type: ignore[arg-type]
            )

    def heal(self) -> None:
        """Answer as a server in order does, whatever was asked of it before."""
        with self._lock:
            self._rules.clear()

    def fail(
        self,
        method: str,
        pattern: str,
        *,
        status: int,
        message: str = "it is broken",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        times: float | None = None,
    ) -> None:
        """Answer with a failure: a Status with `message`, or `body` (text, or an object) as it is."""
        reply = Reply(status, failure(status, message) if body is None else body, headers or {})
        self.on(method, pattern, lambda _: reply, times=times)

    def reset(self, method: str, pattern: str, *, processed: bool = False, times: float | None = 1) -> None:
        """Break the connection instead of answering, before or after the request is processed."""

        def act(request: Request) -> Reply:
            if processed:
                self.process(request)
            return Reply(0, None, lost=True)

        self.on(method, pattern, act, times=times)

    def stall(
        self, method: str, pattern: str, *, times: float | None = 1, when: Callable[[Request], bool] = lambda _: True
    ) -> threading.Event:
        """Keep answers back until the returned Event is set (or the server closes)."""
        release = threading.Event()
        self._stalled.append(release)

        def act(_: Request) -> None:
            release.wait(LONGEST_STALL_SECONDS)

        self.on(method, pattern, act, times=times, when=when)
        return release

    def expire_continue_tokens(self, *, times: float | None = 1) -> None:
        """Answer 410 to the next requests that carry a continue token."""
        reply = Reply(410, failure(410, "The provided continue parameter is too old.", reason="Expired"))
        self.on("GET", "*", lambda _: reply, times=times, when=lambda request: "continue" in request.query)

    def forbid(self, verb: str, resource: str) -> None:
        """Refuse a verb on a resource (`pods/eviction`, `poddisruptionbudgets.policy`) as RBAC does."""
        message = f'pods is forbidden: User "me" cannot {verb} resource "{resource}"'
        reply = Reply(403, failure(403, message, reason="Forbidden"))
        self._forbidden.add((verb, resource))
        for method in ("GET", "POST", "PUT", "PATCH"):
            self.on(
                method,
                "*",
                lambda _: reply,
                when=lambda request: verb_and_resource(request.method, request.path) == (verb, resource),
            )

    # Serving

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if (scheme.lower(), token) != ("bearer", self.token):
                return Reply(401, failure(401, "Unauthorized", reason="Unauthorized"))
        for rule in self._rules:
            if rule.takes(request) and isinstance(reply := rule.act(request), Reply):
                return reply
        return self.process(request)

    def process(self, request: Request) -> Reply:
        """Do what a request asks for, whatever the client is then told; for what `on` calls."""
        with self._lock:
            if PATH.fullmatch(request.path) or MAPS.fullmatch(request.path):
                return self.leases.serve(request)
            if request.method == "POST":
                return self._post(request)
            if request.method == "PATCH":
                return self._patch(request)
            if request.path in self._objects:
                return self._list(request, request.path)
            if (inside := _NAMESPACED.fullmatch(request.path)) and (path := inside[1] + inside[3]) in self._objects:
                return self._list(request, path, inside[2])
            return self._one(request)

    def _post(self, request: Request) -> Reply:
        segments = request.path.split("/")
        if request.path.endswith("/eviction") and len(segments) == 8:
            return self._evict(unquote(segments[4]), unquote(segments[6]), request.body)
        if fnmatchcase(request.path, "/apis/events.k8s.io/v1/namespaces/*/events"):
            self.events.append(request.body)
            return Reply(201, request.body)
        if request.path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            return self._review(request.body)
        return Reply(404, failure(404, "the server could not find the requested resource"))

    def _list(self, request: Request, path: str, namespace: str = "") -> Reply:
        limit = int(request.query.get("limit", "0"))
        token = request.query.get("continue", "")
        version, start = json.loads(base64.b64decode(token)) if token else (len(self.requests), 0)
        found = [each for each in self._objects[path] if namespace in ("", _key(each)[0]) and _selected(each, request)]
        items = self._lists.setdefault(version, found)
        end = start + limit if limit else len(items)
        more = base64.b64encode(json.dumps([version, end]).encode()).decode() if end < len(items) else ""
        page = [{k: v for k, v in each.items() if k not in {"kind", "apiVersion"}} for each in items[start:end]]
        rest = {"continue": more, "remainingItemCount": len(items) - end} if more else {}
        metadata = {"resourceVersion": str(version)} | rest
        group = path.split("/")[2:-1]
        kind = self._kinds[path] + "List"
        return Reply(200, {"kind": kind, "apiVersion": "/".join(group), "metadata": metadata, "items": page})

    def _one(self, request: Request) -> Reply:
        for path, objects in self._objects.items():
            for each in objects:
                namespace, name = _key(each)
                prefix, plural = path.rsplit("/", 1)
                place = f"{prefix}/namespaces/{namespace}/{plural}" if namespace else path
                if request.path == f"{place}/{name}":
                    return Reply(200, each)
        kind = request.path.split("/")[-2]
        return Reply(404, failure(404, f"{request.path} not found", reason="NotFound", kind=kind))

    def _patch(self, request: Request) -> Reply:
        found = self._one(request)
        if found.status != 200:
            return found
        try:
            self.add(patched(found.body, request.body))
        except FailedError:
            return Reply(422, failure(422, "the server rejected our request due to an error in our request"))
        return self._one(request)

    def _review(self, review: Object) -> Reply:
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        names = (resource, f"{resource}.{asked.get('group')}")
        allowed = not any((asked["verb"], name) in self._forbidden for name in names)
        return Reply(201, {**review, "status": {"allowed": allowed}})

    # Evictions, by the rules of the real server (pkg/registry/core/pod/storage/eviction.go)

    def _evict(self, namespace: str, name: str, eviction: Object) -> Reply:
        pod = next((each for each in self._objects["/api/v1/pods"] if _key(each) == (namespace, name)), None)
        if pod is None:
            return Reply(404, failure(404, f'pods "{name}" not found', reason="NotFound", kind="pods"))
        refusal = self._precondition(pod, eviction) or self._pdb_refusal(pod)
        if refusal:
            return refusal
        self.remove_pod(namespace, name)
        self.evicted.append(f"{namespace}/{name}")
        return Reply(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def _precondition(self, pod: Object, eviction: Object) -> Reply | None:
        wanted = eviction.get("deleteOptions", {}).get("preconditions", {})
        for each, name, so in (
            ("uid", "UID", "deleted and then recreated"),
            ("resourceVersion", "ResourceVersion", "modified"),
        ):
            found = pod["metadata"].get(each)
            if wanted.get(each) not in (None, found):
                message = (
                    f'Operation cannot be fulfilled on Pod "{pod["metadata"]["name"]}": the {name} in the precondition '
                    f"({wanted[each]}) does not match the {name} in record ({found}). The object might have been {so}"
                )
                return Reply(409, failure(409, message, reason="Conflict", kind="Pod"))
        return None

    def _pdb_refusal(self, pod: Object) -> Reply | None:
        status, metadata = pod.get("status", {}), pod["metadata"]
        if status.get("phase") in {"Succeeded", "Failed", "Pending"} or metadata.get("deletionTimestamp"):
            return None
        pdbs = [pdb for pdb in self._objects["/apis/policy/v1/poddisruptionbudgets"] if covers(pdb, pod)]
        if len(pdbs) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return Reply(500, failure(500, text))
        return spend(pdbs[0], pod) if pdbs else None


def _selected(each: Object, request: Request) -> bool:
    """Whether an object has one of the values that a label selector `key in (a,b)` names; all have without one."""
    key, found, values = request.query.get("labelSelector", "").partition(" in ")
    return not found or each["metadata"].get("labels", {}).get(key, "") in values.strip("()").split(",")


def _key(each: Object) -> tuple[str, str]:
    return each["metadata"].get("namespace", ""), each["metadata"]["name"]
