"""The ConfigMap of the memory: read, and written only over the version that was read (compare-and-swap).

apiVersion: v1
kind: ConfigMap
metadata: {name: kube-rebalancer-memory, namespace: kube-system}
data:
memory: H4sIAAAAAAAC...   # see `rebalancer.memory.document`
pause: '{"until": "2026-01-15T14:00:00Z", "reason": "load test"}'
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from rebalancer.kube.answers import NotFound, Rejected, decoded, error_of
from rebalancer.kube.client import LARGEST_OBJECT, Client, path_of
from rebalancer.kube.halt import Deadline

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class MapContent:
    """What the ConfigMap holds.

    Attributes:
        data: its texts by key.
        version: the resourceVersion that was read; empty where there is no ConfigMap yet.
        metadata: all else that a write has to keep.
    """

    data: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)


class _MapDocument(msgspec.Struct):
    kind: str = ""
    metadata: dict[str, object] = {}
    data: dict[str, str] | None = None


class MemoryMap:
    """One ConfigMap by its name.

    Args:
        client: the API server.
        namespace: of the ConfigMap.
        name: of the ConfigMap.
    """

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        self._collection = path_of("api", "v1", "namespaces", namespace, "configmaps")
        self._path = self._collection + path_of(name)

    def read(self) -> MapContent:
        """Return what it holds; nothing where there is none.

        Raises:
            ClusterError: it cannot be read.
        """
        try:
            body = self._client.get(self._path, deadline=Deadline.after(_SECONDS), largest=LARGEST_OBJECT)
        except NotFound:
            return MapContent()
        found = decoded(body, _MapDocument, self._path, "a ConfigMap")
        version = found.metadata.get("resourceVersion")
        if found.kind != "ConfigMap" or not isinstance(version, str):
            raise Rejected(f"the API server does not answer {self._path} with a ConfigMap")
        kept = {key: each for key, each in found.metadata.items() if key in ("labels", "annotations")}
        return MapContent(found.data or {}, version, kept)

    def write(self, before: MapContent, changes: Mapping[str, str | None]) -> bool:
        """Replace the version that was read; return False if it has changed since.

        Args:
            before: as it was read; what is not changed stays.
            changes: texts by key; None takes the key out.

        Raises:
            ClusterError: it cannot be written.
        """
        data = {**before.data, **changes}
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                **before.metadata,
                "name": self.name,
                "namespace": self.namespace,
                **({"resourceVersion": before.version} if before.version else {}),
            },
            "data": {key: text for key, text in data.items() if text is not None},
        }
        method, path = ("PUT", self._path) if before.version else ("POST", self._collection)
        send = self._client.put if before.version else self._client.post
        answer = send(path, json.dumps(document).encode(), deadline=Deadline.after(_SECONDS))
        if answer.status == HTTPStatus.CONFLICT:
            return False
        if not answer.is_success:
            raise error_of(answer, method, path)
        return True
