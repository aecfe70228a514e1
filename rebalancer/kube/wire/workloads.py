"""Workloads from the API server's JSON: their selectors, their templates, and whether these may change.

Sources: the Kubernetes documentation (Deployments, ReplicaSet, StatefulSets, Jobs) and the API reference.
"""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from rebalancer.cluster.pod import Owner
from rebalancer.cluster.scheduler_inputs import Notes, Template
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.kube.wire import shared_fields
from rebalancer.kube.wire.annotations import OwnerMetadata
from rebalancer.kube.wire.pages import SPOILT, Kind
from rebalancer.kube.wire.specs import Specs, SpecWire, claims

_UNKNOWN = "what replaces its pods is unknown"
#: Conditions with which a Job makes no more pods.
_ENDING = frozenset(("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget", "Suspended"))


class PodMaker(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What was read of an object that makes pods."""

    key: tuple[str, str]
    uid: str = ""
    selector: LabelSelector | None = None  # None where it has none that counts
    template: Template | None = None  # None where no pod is made from it any more, or it cannot be read
    owner: Owner | None = None
    changing: bool = False  # of a Deployment, whether a rollout is under way
    finishing: bool = False  # of a Job, whether its last pods run
    surges: bool = False  # of a Deployment, whether a rollout would replace its only pod by one that is Ready before
    notes: Notes | None = None


class _WorkloadMetadata(OwnerMetadata, gc=False, rename="camel", kw_only=True):
    name: str


class _OwnedMetadata(_WorkloadMetadata, gc=False, rename="camel", kw_only=True):
    owner_references: list[Owner] | None = None


class _Workload(msgspec.Struct, gc=False):
    metadata: _WorkloadMetadata


class _WorkloadSpec(shared_fields.SelectingWire, gc=False, rename="camel"):
    replicas: int | None = None
    template: msgspec.Raw = msgspec.Raw()


class _WorkloadStatus(msgspec.Struct, gc=False, rename="camel"):
    replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    current_revision: str = ""
    update_revision: str = ""


class _PodMakerWire(_Workload, gc=False):
    """A ReplicaSet, ReplicationController or StatefulSet as the API server writes it."""

    metadata: _OwnedMetadata
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)


class _RollingUpdate(msgspec.Struct, gc=False, rename="camel"):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class _DeploymentStrategy(msgspec.Struct, gc=False, rename="camel"):
    type: str | None = None
    rolling_update: _RollingUpdate | None = None


class _DeploymentSpec(msgspec.Struct, gc=False):
    paused: bool = False
    replicas: int | None = None
    strategy: _DeploymentStrategy | None = None


class DeploymentWire(_Workload, gc=False):
    """A Deployment as the API server writes it; the templates that count are in its ReplicaSets."""

    spec: _DeploymentSpec = msgspec.field(default_factory=_DeploymentSpec)
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)


class _JobSpec(msgspec.Struct, gc=False, rename="camel"):
    completions: int | None = None
    template: msgspec.Raw = msgspec.Raw()
    pod_replacement_policy: str | None = None
    pod_failure_policy: dict[str, Any] | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None


class _JobCondition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _JobStatus(msgspec.Struct, gc=False):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: list[_JobCondition] | None = None


class _JobWire(_Workload, gc=False):
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)
    status: _JobStatus = msgspec.field(default_factory=_JobStatus)


class _TemplateMetadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class TemplateWire(msgspec.Struct, gc=False):
    """A template of pods as the API server writes it."""

    metadata: _TemplateMetadata = msgspec.field(default_factory=_TemplateMetadata)
    spec: SpecWire = msgspec.field(default_factory=SpecWire)


class WorkloadDecoder:
    """Turns workloads into the model."""

    def __init__(self, specs: Specs) -> None:
        self._specs = specs
        self._template = msgspec.json.Decoder(TemplateWire)

    def kinds(self) -> tuple[Kind[Any, Any], ...]:
        """Return the kinds of workloads."""
        wire, key, without = _PodMakerWire, attrgetter("key"), self._without_template
        of_labels = partial(self._workload, selector=by_labels)
        return (
            Kind("ReplicaSet", wire, self._workload, key, without, _UNKNOWN, SPOILT),
            Kind("ReplicationController", wire, of_labels, key, otherwise=SPOILT),
            Kind("StatefulSet", wire, self._stateful_set, key, without, _UNKNOWN, SPOILT),
            Kind("Deployment", DeploymentWire, _deployment, key, otherwise=_UNKNOWN),
            Kind("Job", _JobWire, self._job, key, otherwise=_UNKNOWN),
        )

    def _stateful_set(self, wire: _PodMakerWire) -> PodMaker:
        """Return a StatefulSet; a partition, or OnDelete, matters only while its two revisions differ."""
        revisions = wire.status.current_revision, wire.status.update_revision
        return self._workload(wire, changing=revisions[0] != revisions[1] or _unseen(wire))

    def _job(self, wire: _JobWire) -> PodMaker:
        """Return a Job, without its template if no pod replaces one that goes."""
        spec = wire.spec
        # With a podFailurePolicy the API server sets `Failed`; older ones act so without setting it.
        only_failed = spec.pod_replacement_policy == "Failed" or spec.pod_failure_policy is not None
        ends = wire.metadata.deletion_timestamp is not None or _ends(wire)
        return _maker(
            wire,
            template=None if ends else self._made(spec.template, changing=False, only_failed=only_failed),
            finishing=(spec.completions or 1) - wire.status.succeeded <= wire.status.active,
        )

    def _without_template(self, raw: bytes, _problem: str) -> PodMaker:
        """Return what stands for a workload whose template cannot be read, if the rest can."""
        wire = msgspec.json.decode(raw, type=_PodMakerWire)
        return _maker(wire, selector=shared_fields.selector(wire.spec.selector))

    def _workload(
        self,
        wire: _PodMakerWire,
        selector: Callable[[dict[str, Any] | None], LabelSelector | None] = shared_fields.selector,
        *,
        changing: bool = False,
    ) -> PodMaker:
        """Return a workload; one that has and wants no pods is kept without its template, as there may be many."""
        metadata, wanted = wire.metadata, 1 if wire.spec.replicas is None else wire.spec.replicas  # the API's default
        idle = not wire.status.replicas and wire.spec.replicas == 0
        shrinks = wanted < wire.status.replicas  # so that a pod that goes is not replaced
        changing = changing or shrinks or metadata.deletion_timestamp is not None
        controllers = (shared_fields.checked(each) for each in metadata.owner_references or () if each.controller)
        return _maker(
            wire,
            selector=selector(wire.spec.selector),
            template=None if idle else self._made(wire.spec.template, changing=changing),
            owner=next(controllers, None),
        )

    def _made(self, raw: msgspec.Raw, *, changing: bool, only_failed: bool = False) -> Template | None:
        if not bytes(raw):
            return None
        wire = self._template.decode(raw)
        spec = self._specs.of(wire.spec)
        if spec.problem:
            raise ValueError(f"in its template: {spec.problem}")
        return Template(
            labels=wire.metadata.labels or {},
            spec=spec,
            claims=claims(wire.spec.volumes),
            makes_claims=any(each.ephemeral is not None for each in wire.spec.volumes or ()),
            changing=changing,
            only_failed=only_failed,
        )


def _maker(wire: _Workload, **fields: Any) -> PodMaker:
    return PodMaker(key=wire.metadata.key, uid=wire.metadata.uid, notes=wire.metadata.notes, **fields)


def _deployment(wire: DeploymentWire) -> PodMaker:
    """Return a Deployment, which says whether the templates of its ReplicaSets change; one that is paused may go on."""
    return _maker(wire, changing=_is_rolled_out(wire), surges=surges(wire))


def _is_rolled_out(wire: DeploymentWire) -> bool:
    old = wire.status.replicas > wire.status.updated_replicas
    ends = wire.metadata.deletion_timestamp is not None
    return old or ends or wire.spec.paused or _unseen(wire)


def surges(wire: DeploymentWire) -> bool:
    """Return whether a rollout would make a second pod Ready before the only one goes: 25 % are 1 and 0 of one pod."""
    wanted = 1 if wire.spec.replicas is None else wire.spec.replicas
    strategy = wire.spec.strategy or _DeploymentStrategy()
    if wanted != 1 or wire.status.replicas != 1 or _is_rolled_out(wire) or strategy.type not in (None, "RollingUpdate"):
        return False
    limits = strategy.rolling_update or _RollingUpdate()
    return _part(limits.max_surge, least=1) >= 1 and _part(limits.max_unavailable, least=100) < 1


def _part(amount: int | str | None, *, least: int) -> float:
    """Return how many of one pod an amount is, in whole pods: a percentage counts as one from `least` on."""
    if amount is None:
        return float(least == 1)
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    return float(digits.isdecimal() and int(digits) >= least) if amount.endswith("%") else float(least > 1)


def by_labels(labels: dict[str, Any] | None) -> LabelSelector | None:
    """Return the selector of a kind whose selector is a map of labels; an empty one counts as absent."""
    wanted = {key: str(value) for key, value in (labels or {}).items()}
    return EVERYTHING.narrowed(wanted, wanted) or None


def _unseen(wire: _PodMakerWire | DeploymentWire) -> bool:
    return wire.status.observed_generation < wire.metadata.generation


def _ends(wire: _JobWire) -> bool:
    """Return whether a Job makes no more pods; an evicted one counts as failed, unless the spec may forgive it."""
    spec, status = wire.spec, wire.status
    counted = spec.pod_failure_policy is None and spec.backoff_limit_per_index is None
    last = counted and spec.backoff_limit is not None and status.failed >= spec.backoff_limit
    return last or any(each.type in _ENDING and each.status == "True" for each in status.conditions or ())
