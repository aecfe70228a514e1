"""A Lease and the ConfigMap of the memory: read, created and updated, but never over a version that was not read.

When two processes write at once, only one succeeds:

1. A and B both read the Lease: resourceVersion 812, no holder.
2. A writes itself as holder, on version 812.  The API server accepts, and the version is now 813.
3. B writes itself as holder, also on version 812.  The API server answers 409: B does not hold the Lease.

The ConfigMap has the memory (`rebalancer.memory.document`), and beside it a pause of all runs:

    memory: H4sIAAAAAAAC...
    pause: '{"until": "2026-01-15T14:00:00Z", "reason": "load test"}'
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from math import ceil
from typing import Any, TypeVar

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
_TRIES = 10  # how often a write is tried while others write to the Lease
_MAP_SECONDS = 10.0  # for one request for the ConfigMap
_API_VERSION = "coordination.k8s.io/v1"


class Kept(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The metadata that a write keeps: leaving out what others have put there would remove it."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""  # without it the API server makes a Lease anew that was deleted meanwhile
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    owner_references: list[dict[str, object]] | None = None
    finalizers: list[str] | None = None


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
    kept: Kept = field(default_factory=Kept)  # the rest of the metadata


class _Object(msgspec.Struct):
    kind: str = ""
    metadata: Kept = Kept()


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    renew_time: datetime | None = None
    acquire_time: datetime | None = None
    lease_transitions: Int32 | None = None


class _LeaseObject(_Object):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


class MapContent(_Object):
    """What the ConfigMap holds; without a version there is none yet."""

    data: dict[str, str] = {}
    binary_data: dict[str, str] | None = msgspec.field(default=None, name="binaryData")  # of others; a write keeps it


ObjectT = TypeVar("ObjectT", bound=_Object)


class _Stored:
    """One object by its name, which is never written over a version that was not read."""

    def __init__(self, client: Client, namespace: str, name: str, api_version: str, kind: str) -> None:
        self.namespace = namespace
        self.name = name
        self._client = client
        self._head = {"apiVersion": api_version, "kind": kind}
        root = "apis" if "/" in api_version else "api"
        self._collection = path_of(root, *api_version.split("/"), "namespaces", namespace, f"{kind.lower()}s")
        self._path = self._collection + path_of(name)

    def _get(self, client: Client, until: Deadline, form: type[ObjectT]) -> ObjectT | None:
        try:
            body = client.get(self._path, deadline=until, largest=LARGEST_OBJECT)
        except NotFound:
            return None
        return self._decoded(body, form)

    def _decoded(self, body: bytes, form: type[ObjectT]) -> ObjectT:
        found, kind = decoded(body, form, self._path, f"a {self._head['kind']}"), self._head["kind"]
        if found.kind != kind or not found.metadata.resource_version:
            odd = f"it has the kind {found.kind!r}, or no resourceVersion"
            raise Rejected(f"the API server does not answer {self._path} with a {kind}: {odd}")
        return found

    def _put(self, client: Client, until: Deadline, metadata: Kept, **content: Any) -> bytes | None:
        """Write over the version that the metadata has, and return the answer; None where others were faster."""
        named = msgspec.structs.replace(metadata, name=self.name, namespace=self.namespace)
        method, path = ("PUT", self._path) if metadata.resource_version else ("POST", self._collection)
        body = msgspec.json.encode({**self._head, "metadata": named, **content})
        answer = client.write(method, path, body, deadline=until)
        if answer.status == HTTPStatus.CONFLICT:
            return None
        answer.confirm(self._head["kind"])
        return answer.body


class Leases(_Stored):
    """One Lease by its name; the seconds are for one request and its retries, those of a call for credentials too."""

    def __init__(self, client: Client, namespace: str, name: str, seconds: float) -> None:
        super().__init__(client, namespace, name, _API_VERSION, "Lease")
        self._patient = replace(client, is_patient=True)
        self._seconds = seconds

    def read(self, seconds: float | None = None) -> Lease | None:
        """Return the Lease; None where there is none."""
        found = self._get(*self._asking(seconds), _LeaseObject)
        return _lease(found) if found else None

    def write(self, lease: Lease, seconds: float | None = None) -> Lease | None:
        """Replace the version that it names, or create it where it names none; None where others were faster."""
        spec = {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": max(1, ceil(lease.duration)),
            "acquireTime": _micro_time(lease.acquired),
            "renewTime": _micro_time(lease.renewed),
            "leaseTransitions": lease.transitions,
        }
        kept, notes = lease.kept, dict(lease.annotations)
        metadata = msgspec.structs.replace(kept, resource_version=lease.version, annotations=notes)
        body = self._put(*self._asking(seconds), metadata, spec=spec)
        return None if body is None else _lease(self._decoded(body, _LeaseObject))

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


def _lease(found: _LeaseObject) -> Lease:
    spec, metadata = found.spec, found.metadata
    return Lease(
        holder=spec.holder_identity or "",
        duration=spec.lease_duration_seconds or 0,
        renewed=aware(spec.renew_time),
        acquired=aware(spec.acquire_time),
        transitions=max(0, spec.lease_transitions or 0),
        version=metadata.resource_version,
        annotations=metadata.annotations or {},
        kept=metadata,
    )


def _micro_time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if time else None


class MemoryMap(_Stored):
    """One ConfigMap by its name."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        super().__init__(client, namespace, name, "v1", "ConfigMap")

    def read(self) -> MapContent:
        """Return what it holds; nothing where there is none."""
        return self._get(self._client, Deadline.after(_MAP_SECONDS), MapContent) or MapContent()

    def write(self, before: MapContent, changes: Mapping[str, str | None]) -> bool:
        """Replace the version that was read; return False if it has changed since.  None takes a key out."""
        data = {key: text for key, text in {**before.data, **changes}.items() if text is not None}
        content = {"data": data, "binaryData": before.binary_data}
        return self._put(self._client, Deadline.after(_MAP_SECONDS), before.metadata, **content) is not None
