"""Leases and ConfigMaps for `FakeApiServer`: created once, replaced on the version that was read."""

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from rebalancer.memory.document import KEY, Memory, encoded
from rebalancer.run.leadership import GIVEN_BACK
from tests.fake_http import Reply, Request

Object = dict[str, Any]

PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/([^/]+)/leases(?:/([^/]+))?")
MAPS = re.compile(r"/api/v1/namespaces/([^/]+)/configmaps(?:/([^/]+))?")


class FakeLeases:
    """Leases by namespace and name, with the versions of the real server; ConfigMaps too, beside them.

    The usual Leases were given back by their last holders, and the usual memory has been kept for long.

    Attributes:
        held: the Leases.
        maps: the ConfigMaps.
        lock: held while a request is answered, and by a test that changes Leases underneath.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held: dict[tuple[str, str], Object] = {}
        self.maps: dict[tuple[str, str], Object] = {}
        self._version = 0
        for name in ("rebalancer", "rebalancer-mark"):  # a missing one is waited for
            self.give_back(name)
        self.remember({KEY: encoded(Memory(since=datetime(2026, 1, 1, tzinfo=UTC)))})

    def give_back(self, name: str = "rebalancer", namespace: str = "kube-system") -> None:
        """Let nobody hold a Lease, as after a clean end, so that the next one need not wait."""
        metadata = {"name": name, "namespace": namespace, "annotations": {GIVEN_BACK: "before"}}
        with self.lock:
            lease = {"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": ""}}
            self._store(self.held, (namespace, name), lease, 200)

    def hold(
        self, holder: str = "cronjob-1", name: str = "rebalancer", *, age: float = 0.0, duration: int = 3600
    ) -> None:
        """Let somebody hold a Lease, who has renewed it so many seconds ago."""
        renewed = f"{datetime.now(UTC) - timedelta(seconds=age):%FT%T.%fZ}"
        spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": renewed}
        with self.lock:
            lease = {"kind": "Lease", "metadata": {"name": name, "namespace": "kube-system"}, "spec": spec}
            self._store(self.held, ("kube-system", name), lease, 200)

    def remember(self, data: dict[str, str]) -> None:
        namespace, name = key = ("kube-system", "kube-rebalancer-memory")
        with self.lock:
            body = {"kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
            self._store(self.maps, key, body, 200)

    def memory(self, name: str = "kube-rebalancer-memory") -> dict[str, str] | None:
        found = self.maps.get(("kube-system", name))
        return None if found is None else found.get("data") or {}

    def holder(self, name: str = "rebalancer", namespace: str = "kube-system") -> str | None:
        """Return who holds a Lease; None where there is none."""
        found = self.held.get((namespace, name))
        return found["spec"].get("holderIdentity") if found else None

    def note(self, annotation: str, text: str, name: str = "rebalancer", namespace: str = "kube-system") -> None:
        with self.lock:
            self.held[namespace, name]["metadata"].setdefault("annotations", {})[annotation] = text

    def serve(self, request: Request) -> Reply:
        with self.lock:
            return self._serve(request)

    def _serve(self, request: Request) -> Reply:
        matched, held = PATH.fullmatch(request.path), self.held
        if matched is None:
            matched, held = MAPS.fullmatch(request.path), self.maps
        assert matched
        namespace, name = matched.groups()
        if request.method == "POST":
            key = (namespace, request.body["metadata"]["name"])
            return _status(409, "AlreadyExists") if key in held else self._store(held, key, request.body, 201)
        key, puts = (namespace, name), request.method == "PUT"
        if key not in held and puts and held is self.held and not request.body["metadata"].get("uid"):
            return self._store(held, key, request.body, 201)  # so does the real server, for Leases
        if key not in held:
            return _status(409, "Conflict") if puts and held is self.held else _status(404, "NotFound")
        if not puts:
            return Reply(200, held[key])
        version = request.body["metadata"].get("resourceVersion")
        if version not in (None, held[key]["metadata"]["resourceVersion"]):
            return _status(409, "Conflict")
        return self._store(held, key, request.body, 200)

    def _store(self, held: dict[tuple[str, str], Object], key: tuple[str, str], body: Object, status: int) -> Reply:
        self._version += 1
        uid = held[key]["metadata"]["uid"] if key in held else f"uid-{self._version}"
        held[key] = {**body, "metadata": {**body["metadata"], "uid": uid, "resourceVersion": str(self._version)}}
        return Reply(status, held[key])


def _status(code: int, reason: str) -> Reply:
    return Reply(code, {"kind": "Status", "apiVersion": "v1", "message": reason, "reason": reason, "code": code})
