"""Pods, narrowed to what decisions need; immutable.

A pod's `spec` is shared by all pods of one template, so answers about it can be kept by its identity.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.cluster.selectors import Labels, LabelSelector, NodeSelectorTerm, any_term_matches
from rebalancer.cluster.taints import Toleration

#: A pod without a creation time counts as infinitely old, as in the descheduler.
LONG_AGO = datetime.min.replace(tzinfo=UTC)

_SEVERAL = 2

#: Value of the class `system-cluster-critical`; a pod with this priority or a higher one is critical.
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000

#: The classes whose pods are critical, even where the priority number is missing.
SYSTEM_CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")


#: An int32, as in the API; larger numbers have no place in an array of scores.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Owner(msgspec.Struct, frozen=True, gc=False):
    """An ownerReference; the one with `controller` set manages the pod."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = False


class PreferredTerm(msgspec.Struct, frozen=True, gc=False):
    """A preferred node affinity term with its weight."""

    weight: Int32 = 0
    term: NodeSelectorTerm = msgspec.field(default=NodeSelectorTerm(), name="preference")


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A topology spread constraint as the pod declares it."""

    max_skew: Int32 = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    selector: LabelSelector | None = msgspec.field(default=None, name="labelSelector")
    match_label_keys: tuple[str, ...] = ()
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


#: What the scheduler assumes for a container without such a request: millicores, and bytes.
ASSUMED: Resources = {CPU: 100, MEMORY: 200 << 20}


class PodAffinityTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Selects pods to be near, or to be away from; near means in the same topology domain."""

    topology_key: str = ""
    selector: LabelSelector | None = msgspec.field(default=None, name="labelSelector")
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodTerm(msgspec.Struct, frozen=True, gc=False):
    """A preferred term of pod affinity with its weight."""

    weight: Int32 = 0
    term: PodAffinityTerm = msgspec.field(default=PodAffinityTerm(), name="podAffinityTerm")


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the node that a container takes; the address 0.0.0.0 stands for all of them."""

    port: int
    protocol: str = "TCP"
    address: str = "0.0.0.0"  # noqa: S104  the API's own default, nothing listens here


class IscsiDisk(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A disk that a pod names in its own volumes; two pods on one node may not share it unless both only read."""

    iqn: str = ""
    read_only: bool = False


class ContainerCpu(msgspec.Struct, frozen=True, gc=False):
    """What a container is limited to and requests, in millicores; None where it does not say."""

    limit: int | None = None
    request: int | None = None


class Placement(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What else the scheduler reads."""

    scheduler: str = "default-scheduler"  # the scheduler that the pod names
    #: Requests with what the scheduler assumes for each container that names no cpu or memory; None where that is not
    #: known, as for pods made by tests.
    assumed: Resources | None = None
    assumed_of_containers: Resources | None = None  # without requests at pod level; None where the pod has none
    #: `assumed` as schedulers up to 1.31 count it for running pods, which leave sidecars out of the sum; None where the
    #: pod has none.
    assumed_without_sidecars: Resources | None = None
    #: Requests as schedulers count them that know neither sidecars nor pod-level requests; None where the pod has
    #: neither.
    requests_of_containers: Resources | None = None
    images: tuple[str, ...] = ()  # of containers, one each, with a tag
    init_images: tuple[str, ...] = ()  # of init containers, one each
    volume_images: tuple[str, ...] = ()  # of image volumes, one each
    host_ports: tuple[HostPort, ...] = ()  # of containers
    sidecar_ports: tuple[HostPort, ...] = ()  # host ports of restartable init containers
    affinity: tuple[PodAffinityTerm, ...] = ()  # required pod affinity
    preferred_affinity: tuple[WeightedPodTerm, ...] = ()  # pods to be near
    preferred_anti_affinity: tuple[WeightedPodTerm, ...] = ()  # pods to be away from
    gated: bool = False  # whether a scheduling gate holds it back
    preempts: bool = True  # whether the pod may have others evicted
    disks: tuple[IscsiDisk, ...] = ()  # those named in the pod itself
    removed_volumes: tuple[str, ...] = ()  # the kinds of its volumes that Kubernetes has removed, as the API calls them
    cpus: tuple[ContainerCpu, ...] = ()  # of the containers, without init containers
    overhead_cpu: int = 0  # cpu of the pod's overhead (RuntimeClass), in millicores


PLAIN = Placement()


class PodSpec(msgspec.Struct, frozen=True, gc=False):
    """What all pods of one template have in common."""

    requests: Resources  # effective requests, cpu in millicores, else whole units
    requested: frozenset[str] = frozenset()  # resources for which some container has a request entry, even one of zero
    images: tuple[str, ...] = ()
    node_selector: Labels | None = None  # None where the key is absent (an empty one is present)
    node_terms: tuple[NodeSelectorTerm, ...] | None = None  # required node affinity; without terms it matches no node
    preferred: tuple[PreferredTerm, ...] = ()
    node_affinity: bool = False  # whether any node affinity is declared, required or preferred
    tolerations: tuple[Toleration, ...] = ()
    anti_affinity: tuple[PodAffinityTerm, ...] = ()  # required pod anti-affinity
    spread: tuple[SpreadConstraint, ...] = ()
    priority: int | None = None
    local_storage: bool = False  # some volume is a hostPath or an emptyDir
    resource_claims: bool = False
    priority_class: str = ""  # spec.priorityClassName
    qos: str = "BestEffort"  # quality of service derived from the containers
    problem: str = ""  # why this spec cannot be trusted; empty if it can
    placement: Placement = PLAIN  # what else the scheduler reads

    def selects_node(self, labels: Labels, name: str) -> bool:
        """Return whether node selector and required node affinity match a node."""
        if self.node_selector and any(labels.get(key) != value for key, value in self.node_selector.items()):
            return False
        return self.node_terms is None or any_term_matches(self.node_terms, labels, name)


class ContainerStatus(msgspec.Struct, frozen=True, gc=False):
    """The current state of one container."""

    restarts: int = 0
    waiting: str = ""
    terminated: str = ""
    exit_code: int | None = None


class Condition(msgspec.Struct, frozen=True, gc=False):
    """A condition in a status; a missing transition time is None."""

    type: str
    status: str = ""
    reason: str = ""
    changed: datetime | None = None


class Pod(msgspec.Struct, frozen=True, gc=False, kw_only=True, eq=False):
    """A pod at the time of the snapshot.  Two pods are equal only if they are the same object."""

    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""  # the version that was seen; any write to the pod changes it; empty if unknown
    node: str = ""
    labels: Labels = {}
    created: datetime = LONG_AGO
    started: datetime | None = None
    terminating: bool = False
    grace_seconds: int = 0  # the grace period of its deletion; 0 unless it is being deleted
    owners: tuple[Owner, ...] = ()
    spec: PodSpec
    phase: str = ""
    reason: str = ""
    qos: str = "BestEffort"
    ready: bool = False
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerStatus, ...] = ()
    init_containers: tuple[ContainerStatus, ...] = ()
    ephemeral_containers: tuple[ContainerStatus, ...] = ()
    claims: tuple[str, ...] = ()  # PersistentVolumeClaims that its volumes name
    own_claims: tuple[str, ...] = ()  # those of its generic ephemeral volumes, which end with it
    nominated_node: str = ""  # where the scheduler has evicted others to make room for it; empty as a rule
    mirror: bool = False
    static: bool = False  # whether its source is other than the API server
    evict_annotation: bool = False  # annotated as one that may be evicted despite its protections
    prefer_no_eviction: bool = False
    marked_critical: bool = False
    remark: str = ""  # what is odd about its annotations and worth a warning; empty if nothing is
    holding: str = ""  # the annotation by which it holds its node against autoscalers; empty if it has none
    evacuating: bool = False  # another controller took over its eviction in an earlier cycle and has not finished
    problem: str = ""  # why the pod could not be read in full; empty if it could

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def active(self) -> bool:
        """Whether the pod takes room on its node: neither Succeeded nor Failed."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name: what identifies the pod at one point in time."""
        return (self.namespace, self.name)

    @property
    def age_order(self) -> tuple[datetime, str, str]:
        """The order that breaks every tie: oldest first, then namespace and name."""
        return (self.created, self.namespace, self.name)

    @property
    def controller(self) -> Owner | None:
        """The owner that manages the pod: the controller, else the first owner, else None."""
        owners = self.owners
        if len(owners) < _SEVERAL:
            return owners[0] if owners else None
        return next((owner for owner in owners if owner.controller), owners[0])

    @property
    def bound(self) -> datetime:
        """When the pod got its node: by its condition, else when the kubelet saw it, else when it was created."""
        times = (each.changed for each in self.conditions if each.type == "PodScheduled" and each.status == "True")
        return next(times, None) or self.started or self.created

    def statuses(self, *, init: bool, ephemeral: bool = False) -> tuple[ContainerStatus, ...]:
        """Return the states of its containers, and of others if they are asked for."""
        others = (self.init_containers if init else ()) + (self.ephemeral_containers if ephemeral else ())
        return self.containers + others

    def age(self, now: datetime) -> timedelta:
        """Return the time since creation; negative if that lies in the future."""
        return now - self.created
