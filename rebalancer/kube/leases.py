"""A Lease and the ConfigMap of the memory: read, created and updated, but never over a version that was not read.

When two processes write at once, only one succeeds:

1. A and B both read the Lease: resourceVersion 812, no holder.
2. A writes itself as holder, on version 812.  The API server accepts, and the version is now 813.
3. B writes itself as holder, also on version 812.  The API server answers 409: B does not hold the Lease.
4. A renews: it writes a new renewTime on version 813.  When and how often is decided in `rebalancer.run.leadership`.

The ConfigMap has the memory (`rebalancer.memory.document`), and beside it a pause of all runs:

    memory: H4sIAAAAAAAC...
    pause: '{"until": "2026-01-15T14:00:00Z", "reason": "load test"}'
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from math import ceil

import msgspec

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import NotFound, Rejected, decoded
from rebalancer.kube.client import LARGEST_OBJECT, Client, path_of
from rebalancer.kube.tries import Deadline
from rebalancer.kube.wire.objects import Int32, aware

MOST_TRANSITIONS = 2**31 - 1  # as often as the holder may change by a Lease's count; the API server takes no more
#: The longest duration that is believed, seconds: with the largest one that can be written nobody would act for 68
#: years, and whoever may edit the Lease could write it.
LONGEST_SECONDS = 3600.0

#: What others have put into the metadata; a write that left it out would remove it.
_KEPT = ("labels", "ownerReferences", "finalizers")
_TRIES = 10  # how often a write is tried while others write to the Lease
#: For one request for the ConfigMap.
_MAP_SECONDS = 10.0
_API_VERSION = "coordination.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Lease:
    """The content of a Lease."""

    holder: str  # empty where nobody holds it
    duration: float  # seconds after the last renewal in which nobody else may take it
    renewed: datetime | None  # by the holder's clock; None where that is not set
    acquired: datetime | None
    transitions: int  # how often the holder changed
    version: str  # that was read; a write is refused when the object has changed since.  Empty where there is none yet
    annotations: Mapping[str, str] = field(default_factory=dict)  # all of them; a write replaces them
    kept: Mapping[str, object] = field(default_factory=dict)  # what else of the metadata a write has to keep


class _Stored:
    """One object by its name, which is never written over a version that was not read."""

    def __init__(self, client: Client, namespace: str, name: str, *version_and_plural: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        *version, plural = version_and_plural
        self._collection = path_of(*version, "namespaces", namespace, plural)
        self._path = self._collection + path_of(name)

    def _put(self, client: Client, until: Deadline, document: Mapping[str, object], version: object) -> bytes | None:
        method, path = ("PUT", self._path) if version else ("POST", self._collection)
        answer = client.write(method, path, json.dumps(document).encode(), deadline=until)
        if answer.status == HTTPStatus.CONFLICT:
            return None
        answer.confirm(str(document["kind"]))
        return answer.body


class Leases(_Stored):
    """One Lease by its name; the seconds are for one request and its retries, those of a call for credentials too."""

    def __init__(self, client: Client, namespace: str, name: str, seconds: float) -> None:
        super().__init__(client, namespace, name, "apis", *_API_VERSION.split("/"), "leases")
        self._patient = replace(client, is_patient=True)
        self._seconds = seconds

    def read(self, seconds: float | None = None) -> Lease | None:
        """Return the Lease; None where there is none."""
        client, deadline = self._asking(seconds)
        try:
            body = client.get(self._path, deadline=deadline)
        except NotFound:
            return None
        return self._decoded(body)

    def write(self, lease: Lease, seconds: float | None = None) -> Lease | None:
        """Replace the version that it names, or create it where it names none; None where others were faster."""
        body = self._put(*self._asking(seconds), self._encoded(lease), lease.version)
        return None if body is None else self._decoded(body)

    def annotate(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        """Change its annotations, whoever holds it; where there is none, create one that nobody holds."""
        for _ in range(_TRIES):
            lease = self.read() or Lease("", 1.0, None, None, 0, "")
            annotations = change(lease.annotations)
            if annotations == lease.annotations or self.write(replace(lease, annotations=annotations)):
                return
        raise ClusterError(f"others write to the lease {self.namespace}/{self.name} all the time")

    def _asking(self, seconds: float | None) -> tuple[Client, Deadline]:
        if seconds is None:
            return self._patient, Deadline.after(self._seconds)
        return self._client, Deadline.after(seconds)

    def _encoded(self, lease: Lease) -> Mapping[str, object]:
        named = {"name": self.name, "namespace": self.namespace}
        metadata = {**lease.kept, **named, "annotations": dict(lease.annotations)}
        spec = {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": max(1, ceil(lease.duration)),
            "acquireTime": _micro_time(lease.acquired),
            "renewTime": _micro_time(lease.renewed),
            "leaseTransitions": lease.transitions,
        }
        version = {"resourceVersion": lease.version} if lease.version else {}
        return {"apiVersion": _API_VERSION, "kind": "Lease", "metadata": {**metadata, **version}, "spec": spec}

    def _decoded(self, body: bytes) -> Lease:
        document = decoded(body, _Document, self._path, "a Lease")
        if document.kind != "Lease" or not document.metadata.resource_version:
            odd = f"it has the kind {document.kind!r}, or no resourceVersion"
            raise Rejected(f"the API server does not answer {self._path} with a Lease: {odd}")
        spec = document.spec
        return Lease(
            holder=spec.holder_identity or "",
            duration=spec.lease_duration_seconds or 0,
            renewed=aware(spec.renew_time),
            acquired=aware(spec.acquire_time),
            transitions=max(0, spec.lease_transitions or 0),
            version=document.metadata.resource_version,
            annotations=document.metadata.annotations or {},
            kept={key: each for key, each in msgspec.to_builtins(document.metadata).items() if key in _KEPT and each},
        )


class _LeaseMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    owner_references: list[dict[str, object]] | None = None
    finalizers: list[str] | None = None


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    renew_time: datetime | None = None
    acquire_time: datetime | None = None
    lease_transitions: Int32 | None = None


class _Document(msgspec.Struct):
    kind: str = ""
    metadata: _LeaseMetadata = msgspec.field(default_factory=_LeaseMetadata)
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


def _micro_time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if time else None


class MapContent(msgspec.Struct):
    """What the ConfigMap holds; without metadata, which a write has to keep, there is none yet."""

    kind: str = ""
    metadata: dict[str, object] = {}
    data: dict[str, str] = {}


class MemoryMap(_Stored):
    """One ConfigMap by its name."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        super().__init__(client, namespace, name, "api", "v1", "configmaps")

    def read(self) -> MapContent:
        """Return what it holds; nothing where there is none."""
        try:
            body = self._client.get(self._path, deadline=Deadline.after(_MAP_SECONDS), largest=LARGEST_OBJECT)
        except NotFound:
            return MapContent()
        found = decoded(body, MapContent, self._path, "a ConfigMap")
        if found.kind != "ConfigMap" or not isinstance(found.metadata.get("resourceVersion"), str):
            raise Rejected(f"the API server does not answer {self._path} with a ConfigMap")
        return found

    def write(self, before: MapContent, changes: Mapping[str, str | None]) -> bool:
        """Replace the version that was read; return False if it has changed since.  None takes a key out."""
        kept = (*_KEPT, "annotations", "resourceVersion")
        metadata = {key: each for key, each in before.metadata.items() if key in kept}
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**metadata, "name": self.name, "namespace": self.namespace},
            "data": {key: text for key, text in {**before.data, **changes}.items() if text is not None},
        }
        return self._put(self._client, Deadline.after(_MAP_SECONDS), document, before.metadata) is not None
