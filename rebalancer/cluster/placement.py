"""What the scheduler reads of a pod besides its requests, its node affinity and its spreading; immutable."""

import msgspec

from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.cluster.selectors import LabelSelector

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

    weight: int = 0
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
    """What else the scheduler reads.

    Attributes:
        scheduler: the scheduler that the pod names.
        assumed: requests with what the scheduler assumes for each container that names no cpu or memory; None where
            that is not known, as for pods made by tests.
        assumed_of_containers: the same without requests at pod level; None where the pod has none.
        assumed_without_sidecars: `assumed` as schedulers up to 1.31 count it for running pods, which leave sidecars out
            of the sum; None where the pod has none.
        requests_of_containers: requests as schedulers count them that know neither sidecars nor pod-level requests;
            None where the pod has neither.
        images: of containers, one each, with a tag.
        init_images: of init containers, one each.
        volume_images: of image volumes, one each.
        host_ports: of containers.
        sidecar_ports: host ports of restartable init containers.
        affinity: required pod affinity.
        preferred_affinity: pods to be near.
        preferred_anti_affinity: pods to be away from.
        gated: whether a scheduling gate holds it back.
        preempts: whether the pod may have others evicted.
        disks: those named in the pod itself.
        removed_volumes: the kinds of its volumes that Kubernetes has removed, as the API calls them.
        cpus: of the containers, without init containers.
        overhead_cpu: cpu of the pod's overhead (RuntimeClass), in millicores.
    """

    scheduler: str = "default-scheduler"
    assumed: Resources | None = None
    assumed_of_containers: Resources | None = None
    assumed_without_sidecars: Resources | None = None
    requests_of_containers: Resources | None = None
    images: tuple[str, ...] = ()
    init_images: tuple[str, ...] = ()
    volume_images: tuple[str, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    sidecar_ports: tuple[HostPort, ...] = ()
    affinity: tuple[PodAffinityTerm, ...] = ()
    preferred_affinity: tuple[WeightedPodTerm, ...] = ()
    preferred_anti_affinity: tuple[WeightedPodTerm, ...] = ()
    gated: bool = False
    preempts: bool = True
    disks: tuple[IscsiDisk, ...] = ()
    removed_volumes: tuple[str, ...] = ()
    cpus: tuple[ContainerCpu, ...] = ()
    overhead_cpu: int = 0


PLAIN = Placement()
