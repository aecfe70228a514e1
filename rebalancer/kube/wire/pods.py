"""Pods from the API server's JSON."""

from datetime import datetime
from functools import cache
from sys import intern

import msgspec

from rebalancer.cluster.pod import LONG_AGO, Condition, ContainerStatus, Pod
from rebalancer.kube.wire import shared_fields
from rebalancer.kube.wire.annotations import Annotations, noted
from rebalancer.kube.wire.objects import aware
from rebalancer.kube.wire.shared_fields import decode
from rebalancer.kube.wire.specs import Specs, SpecWire, claims, own_claims

_DEFAULT_NAMESPACE = "default"
_NO_ANNOTATIONS = Annotations()


class _PodMetadata(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: msgspec.Raw = msgspec.Raw()
    annotations: Annotations | None = None
    owner_references: msgspec.Raw = msgspec.Raw()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None


class _Waiting(msgspec.Struct, gc=False):
    reason: str | None = None


class _Terminated(_Waiting, gc=False, rename="camel"):
    exit_code: int = 0


class _State(msgspec.Struct, gc=False):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, gc=False, rename="camel"):
    restart_count: int = 0
    state: _State | None = None


class _PodCondition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str | None = None
    reason: str | None = None
    last_transition_time: datetime | None = None


class _PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    reason: str | None = None
    qos_class: str | None = None
    nominated_node_name: str | None = None
    start_time: datetime | None = None
    conditions: list[_PodCondition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None
    ephemeral_container_statuses: list[_ContainerStatus] | None = None


class PodWire(msgspec.Struct, gc=False):
    """A pod as the API server writes it, narrowed to what is used."""

    metadata: _PodMetadata = msgspec.field(default_factory=_PodMetadata)
    spec: SpecWire = msgspec.field(default_factory=SpecWire)
    status: _PodStatus | None = None


class ListedPod(PodWire, gc=False, rename="camel"):
    """The same with what says that it is a pod; `items` is what a list would have."""

    kind: str = ""
    api_version: str = ""
    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class PodDecoder:
    """Turns pods into the model, sharing what replicas have in common, and specs with other kinds that have them."""

    def __init__(self, specs: Specs) -> None:
        self._specs = specs
        # Thousands of replicas share a few of each: equal bytes are decoded once, which makes `is` a valid cache key.
        self._labels = cache(lambda raw: decode(raw, dict[str, str]) or {})
        self._owners = cache(shared_fields.owners)
        self._statuses = cache(ContainerStatus)
        self._noted = cache(noted)

    def convert(self, wire: PodWire) -> Pod:
        """Return the pod; raise ValueError if it has no name, or its labels or owners cannot be read."""
        metadata, spec, status = wire.metadata, wire.spec, wire.status or _PodStatus()
        pod_spec, annotations = self._specs.of(spec), metadata.annotations or _NO_ANNOTATIONS
        conditions = _conditions(status.conditions) if status.conditions else ()
        return Pod(
            namespace=intern(metadata.namespace or _DEFAULT_NAMESPACE),
            name=shared_fields.named(metadata.name),
            uid=metadata.uid or "",
            resource_version=metadata.resource_version or "",
            node=intern(spec.node_name or ""),
            labels=self._labels(bytes(metadata.labels)),
            created=aware(metadata.creation_timestamp) or LONG_AGO,
            started=aware(status.start_time),
            terminating=metadata.deletion_timestamp is not None,
            grace_seconds=metadata.deletion_grace_period_seconds or 0,
            owners=self._owners(bytes(metadata.owner_references)),
            spec=pod_spec,
            phase=intern(status.phase or ""),
            reason=status.reason or "",
            qos=intern(status.qos_class or pod_spec.qos),
            ready=("Ready", "True") in [(each.type, each.status) for each in conditions],
            conditions=conditions,
            containers=self._container_statuses(status.container_statuses),
            init_containers=self._container_statuses(status.init_container_statuses),
            ephemeral_containers=self._container_statuses(status.ephemeral_container_statuses),
            claims=claims(spec.volumes) if spec.volumes else (),
            own_claims=own_claims(metadata.name, spec.volumes) if spec.volumes else (),
            nominated_node=status.nominated_node_name or "",
            evacuating=_is_evacuating(annotations, status),
            problem=pod_spec.problem,
            **self._noted(annotations),
        )

    def malformed(self, raw: bytes, problem: str) -> Pod:
        """Return what stands for a pod that cannot be decoded: its names and its node; the pod stays."""
        plain = msgspec.json.decode(raw, type=shared_fields.NamedObject)
        node = plain.spec.get("nodeName") if isinstance(plain.spec, dict) else None
        return Pod(
            namespace=str(plain.metadata.namespace or _DEFAULT_NAMESPACE),
            name=shared_fields.named(str(plain.metadata.name or "")),
            uid=str(plain.metadata.uid or ""),
            node=str(node or ""),
            spec=self._specs.of(SpecWire()),
            problem=problem,
        )

    def _container_statuses(self, statuses: list[_ContainerStatus] | None) -> tuple[ContainerStatus, ...]:
        return tuple([self._statuses(*_status_fields(each)) for each in statuses]) if statuses else ()


def _is_evacuating(annotations: Annotations, status: _PodStatus) -> bool:
    annotated = annotations.evict_only is not None and annotations.in_progress is not None
    return annotated and status.phase not in ("Succeeded", "Failed")


def _conditions(wire: list[_PodCondition]) -> tuple[Condition, ...]:
    """Return conditions that share what is equal: of a hundred thousand pods each text would count."""
    found = []
    given = time = None
    for each in wire:
        if each.last_transition_time != given:
            given = each.last_transition_time
            time = aware(given)
        found.append(Condition(intern(each.type), intern(each.status or ""), intern(each.reason or ""), time))
    return tuple(found)


def _status_fields(wire: _ContainerStatus) -> tuple[int, str, str, int | None]:
    state = wire.state or _State()
    waiting = (state.waiting.reason if state.waiting else None) or ""
    if state.terminated is None:
        return (wire.restart_count, waiting, "", None)
    return (wire.restart_count, waiting, state.terminated.reason or "", state.terminated.exit_code)
