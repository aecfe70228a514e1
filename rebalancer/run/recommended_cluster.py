"""The file with the cluster for which requests are recommended: whose pods are whose, and what they request.

It is what `kubectl get pods -A -o json` prints, or `rebalancer snapshot` writes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from rebalancer.cluster.pod import PodSpec
from rebalancer.cluster.resources import parse_milli_quantity, parse_quantity
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SnapshotError, UsageError
from rebalancer.kube.wire.collect import Bytes, Collection, add_document
from rebalancer.kube.wire.pages import name_of
from rebalancer.kube.wire.shared_fields import AnnotatedMetadata, ResourcesWire
from rebalancer.memory.document import lasting_owner
from rebalancer.recommendation.rules import Amounts
from rebalancer.recommendation.workloads import APPS, ContainerCircumstances, Workload, workload_by_name
from rebalancer.run.snapshot_file import documents
from rebalancer.untrusted.documents import decode_json, in_words

PodName = tuple[str, str]


class _Container(msgspec.Struct):
    name: str
    resources: ResourcesWire | None = None


class _TemplateSpec(msgspec.Struct, rename="camel"):
    containers: list[_Container]
    priority_class_name: str = ""


class _Maker(msgspec.Struct, rename="camel"):
    kind: str
    name: str
    api_version: str = APPS
    controller: bool | None = False


class _MakerMetadata(AnnotatedMetadata, rename="camel"):
    owner_references: list[_Maker] | None = None


class _LastStates(msgspec.Struct, rename="camel"):
    name: str = ""
    state: dict[str, dict[str, Any] | None] | None = None
    last_state: dict[str, dict[str, Any] | None] | None = None

    @property
    def is_killed(self) -> bool:
        ended = [(each or {}).get("terminated") for each in (self.state, self.last_state)]
        return "OOMKilled" in (each.get("reason") for each in ended if each)


class _LastStatuses(msgspec.Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[_LastStates] | None = None


class _OwnedPod(msgspec.Struct):
    spec: _TemplateSpec
    metadata: _MakerMetadata = msgspec.field(default_factory=_MakerMetadata)
    status: _LastStatuses = msgspec.field(default_factory=_LastStatuses)


class _ScaledBy(msgspec.Struct):
    name: str = ""
    container: str = ""


class _ScalingMetric(msgspec.Struct, rename="camel"):
    resource: _ScaledBy | None = None
    container_resource: _ScaledBy | None = None


class _Scaling(msgspec.Struct, rename="camel"):
    scale_target_ref: _Maker
    metrics: list[_ScalingMetric] | None = None


class _Scaler(msgspec.Struct):
    metadata: _MakerMetadata
    spec: _Scaling


class KnownCluster(Collection):
    """The objects of a cluster file, and what is known of its workloads."""

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[PodName, Workload] = {}  # by namespace and name, whose pod it is
        self.apis: dict[tuple[str, str, str], str] = {}  # by namespace, kind and name, the apiVersion of an owner
        self.containers: dict[Workload, dict[str, Amounts]] = {}  # by workload, what its containers have
        self.replicas: Counter[Workload] = Counter()  # how many pods each workload has
        self.traits: dict[Workload, set[str]] = {}
        self.left_out: list[str] = []  # which objects could not be read, and why
        self.killed: dict[tuple[Workload, str], set[str]] = {}
        self.scaled: dict[Workload, tuple[str, set[tuple[str, str]]]] = {}
        self._raw: dict[PodName, Bytes] = {}

    def add(self, kind: str, raw: Bytes) -> None:
        """Take in an object; a pod or an autoscaler that cannot be read says nothing of workloads."""
        super().add(kind, raw)
        read = {"Pod": self._add_pod, "HorizontalPodAutoscaler": self._add_scaler}.get(kind)
        try:
            if read:
                read(raw)
        except ValueError as error:
            self.left_out.append(f"--snapshot: {kind} {name_of(raw)} is left out: {error}")

    def add_pod(self, raw: msgspec.Raw, kind: str, version: str) -> bool:  # noqa: ARG002  the interface
        """Leave pods to `add`, which reads more of them."""
        return False

    def _add_pod(self, raw: Bytes) -> None:
        pod = decode_json(raw, _OwnedPod)
        amounts = {each.name: _amounts(each.resources) for each in pod.spec.containers}
        workload, name = _workload(pod.metadata), pod.metadata.key
        ended = pod.status.phase in ("Succeeded", "Failed")  # it requests nothing any more
        self.replicas[workload] += not ended and name not in self.pods
        self.pods[name] = workload
        self._raw[name] = raw
        self.traits.setdefault(workload, set()).update(_traits(pod))
        self.apis |= {(name[0], each.kind, each.name): each.api_version for each in pod.metadata.owner_references or ()}
        containers = self.containers.setdefault(workload, {})
        containers |= {each: now for each, now in amounts.items() if not ended or each not in containers}
        for status in pod.status.container_statuses or ():
            if status.is_killed:
                self.killed.setdefault((workload, status.name), set()).add(name[1])

    def _add_scaler(self, raw: Bytes) -> None:
        """Note by what an autoscaler scales; one without metrics scales by cpu."""
        scaler = decode_json(raw, _Scaler)
        found = [each.resource or each.container_resource for each in scaler.spec.metrics or ()]
        target = scaler.spec.scale_target_ref
        pairs = {(each.container, each.name) for each in found if each} if found else {("", "cpu")}
        namespace, name = scaler.metadata.key
        self.scaled[Workload(namespace, target.kind, target.name)] = name, pairs

    def circumstances(self, workload: Workload, container: str) -> ContainerCircumstances:
        """Return what the file tells of a container besides what it has."""
        scaler, pairs = self.scaled.get(workload, ("", set()))
        scaled = frozenset(name for of, name in pairs if of in ("", container)) & {"cpu", "memory"}
        kills = len(self.killed.get((workload, container), ()))
        return ContainerCircumstances(scaler, scaled, kills, version=self.apis.get(workload, APPS))

    def checked_snapshot(self) -> Snapshot:
        """Return the objects as a snapshot; raise UsageError if one occurs twice, or a list is not complete."""
        try:
            self.check()
            return self.snapshot(datetime.now(UTC))
        except ValueError as error:
            raise UsageError(f"--snapshot: {error}") from error

    def specs_with(self, changes: Mapping[Workload, Mapping[str, Amounts]]) -> dict[PodName, PodSpec]:
        """Return the specs of all pods of these workloads as they would be with these amounts of their containers."""
        collector = self.collector("Pod")
        for name, workload in self.pods.items():
            if workload in changes:
                collector.add(_with_amounts(self._raw[name], changes[workload]))
        return {pod.key: pod.spec for pod in collector.items}


def read_known_cluster(path: str) -> KnownCluster:
    """Read a cluster file; raise UsageError if it cannot be read, or holds no pods."""
    known = KnownCluster()
    try:
        for raw, document in documents(path):
            add_document(known, raw, document=document)
    except SnapshotError as error:
        raise UsageError(f"--{error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--snapshot {path} cannot be read: {in_words(error)}") from None
    if not known.pods:
        raise UsageError(f"--snapshot {path} holds no pods; make it with `kubectl get pods -A -o json`")
    return known


def _workload(metadata: _MakerMetadata) -> Workload:
    owner = next((each for each in metadata.owner_references or () if each.controller), None)
    namespace, name = metadata.key
    if owner is None:
        return Workload(namespace, "Pod", name)
    if owner.kind == "Job":
        return workload_by_name(namespace, name)
    kind, _, above = lasting_owner(owner.kind, owner.name, metadata.labels or {}).partition("/")
    return Workload(namespace, kind, above)


def _traits(pod: _OwnedPod) -> Iterator[str]:
    yield f"priority-class:{pod.spec.priority_class_name}"
    for kind, found in (("label", pod.metadata.labels), ("annotation", pod.metadata.annotations)):
        for name, value in (found or {}).items():
            yield f"{kind}:{name}"
            yield f"{kind}:{name}={value}"


def _amounts(resources: ResourcesWire | None) -> Amounts:
    found = []
    for part in (resources.requests, resources.limits) if resources else ({}, {}):
        given = part or {}
        found.append(parse_milli_quantity(given["cpu"]) if "cpu" in given else None)
        found.append(parse_quantity(given["memory"]) if "memory" in given else None)
    cpu, memory, cpu_limit, memory_limit = found
    return Amounts(cpu, cpu_limit, memory, memory_limit)


def _with_amounts(raw: Bytes, changes: Mapping[str, Amounts]) -> bytes:
    """Return a pod's JSON with other amounts in its containers; the rest stays as it is, byte by byte."""
    pod = decode_json(raw, dict[str, msgspec.Raw])
    spec = decode_json(pod["spec"], dict[str, msgspec.Raw])
    containers = decode_json(spec["containers"], list[dict[str, Any]])
    for each in containers:
        if each["name"] in changes:
            each["resources"] = _merged(each.get("resources") or {}, changes[each["name"]])
    spec["containers"] = msgspec.Raw(msgspec.json.encode(containers))
    return msgspec.json.encode({**pod, "spec": spec})


def _merged(resources: dict[str, Any], new: Amounts) -> dict[str, Any]:
    def part(name: str, cpu: int | None, memory: int | None) -> dict[str, str]:
        changed = {"cpu": None if cpu is None else f"{cpu}m", "memory": None if memory is None else str(memory)}
        return {**(resources.get(name) or {}), **{key: text for key, text in changed.items() if text is not None}}

    limits = part("limits", new.cpu_limit, new.memory_limit)
    return {**resources, "requests": part("requests", new.cpu_request, new.memory_request), "limits": limits}
