"""Leases for `FakeApiServer`: created once, replaced on the version that was read."""

import re
import threading
from typing import Any

from rebalancer.run.leadership import GIVEN_BACK
from tests.fake_http import Reply, Request

Object = dict[str, Any]

PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")


class FakeLeases:
    """Leases by namespace and name, with the versions of the real server.

    The usual ones were given back by their last holders.

    Attributes:
        held: the Leases.
        lock: held while a request is answered, and by a test that changes Leases underneath.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: dict[tuple[str, str], Object] = {}
        self._version = 0
        for name in ("rebalancer", "rebalancer-mark"):  # a missing one is waited for
            self.give_back(name)

    def give_back(self, name: str = "rebalancer", namespace: str = "kube-system") -> None:
        """Let nobody hold a Lease, as after a clean end, so that the next one need not wait."""
        metadata = {"name": name, "namespace": namespace, "annotations": {GIVEN_BACK: "before"}}
        with self.lock:
            self._store((namespace, name), {"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": ""}}, 200)

    def holder(self, name: str = "rebalancer", namespace: str = "kube-system") -> str | None:
        """Return who holds a Lease; None where there is none."""
        found = self.held.get((namespace, name))
        return found["spec"].get("holderIdentity") if found else None

    def note(self, annotation: str, text: str, name: str = "rebalancer", namespace: str = "kube-system") -> None:
        """Annotate a Lease."""
        with self.lock:
            self.held[namespace, name]["metadata"].setdefault("annotations", {})[annotation] = text

    def serve(self, request: Request) -> Reply:
        """Answer a request; the path is one of a Lease."""
        with self.lock:
            return self._serve(request)

    def _serve(self, request: Request) -> Reply:
        matched = PATH.fullmatch(request.path)
        assert matched
        namespace, name = matched.groups()
        if request.method == "POST":
            key = (namespace, request.body["metadata"]["name"])
            return _status(409, "AlreadyExists") if key in self.held else self._store(key, request.body, 201)
        key = (namespace, name)
        if key not in self.held:
            return _status(404, "NotFound")
        if request.method == "GET":
            return Reply(200, self.held[key])
        version = request.body["metadata"].get("resourceVersion")
        if version not in (None, self.held[key]["metadata"]["resourceVersion"]):
            return _status(409, "Conflict")
        return self._store(key, request.body, 200)

    def _store(self, key: tuple[str, str], body: Object, status: int) -> Reply:
        self._version += 1
        self.held[key] = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        return Reply(status, self.held[key])


def _status(code: int, reason: str) -> Reply:
    return Reply(code, {"kind": "Status", "apiVersion": "v1", "message": reason, "reason": reason, "code": code})
