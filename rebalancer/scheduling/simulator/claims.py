"""The claims of pods, and the volumes behind them.

Source: the Kubernetes documentation, Persistent Volumes; Ephemeral Volumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import Claim, SchedulerInputs, StorageClass, Volume
from rebalancer.scheduling.simulator.plugin import PodUnschedulableError, UnknownPlacementError

T = TypeVar("T")


@dataclass(frozen=True)
class PodClaims:
    """The claims of a pod, bound and waiting.

    Attributes:
        bound: claims with their volumes; None for a volume that does not exist.
        waiting: claims that get a volume once the pod has a node.
    """

    bound: tuple[tuple[Claim, Volume | None], ...] = ()
    waiting: tuple[Claim, ...] = ()


def read(kind: str, objects: T | None) -> T:
    """Return objects that were read.

    Raises:
        UnknownPlacementError: they were not.
    """
    if objects is None:
        raise UnknownPlacementError(f"where the pod's volumes can be goes by {kind}, which were not read")
    return objects


def names(pod: Pod) -> tuple[str, ...]:
    """Return the names of all claims of a pod, in its namespace."""
    return (*pod.claims, *pod.own_claims)


class Claims:
    """Sorts the claims of pods into bound and waiting ones."""

    def __init__(self, scheduler_inputs: SchedulerInputs) -> None:
        self._inputs = scheduler_inputs

    def of(self, pod: Pod) -> PodClaims:
        """Return the claims of a pod.

        Raises:
            PodUnschedulableError: a claim is missing, is being deleted, or is unbound although its class binds at once.
            UnknownPlacementError: what the answer depends on was not read.
        """
        claims = [self._claim(pod, name) for name in names(pod)]
        volumes = read("PersistentVolumes", self._inputs.volumes) if claims else {}
        bound = tuple((claim, volumes.get(claim.volume)) for claim in claims if claim.bound)
        others = [claim for claim in claims if not claim.bound]
        if any(claim.volume or not self.storage_class(claim).waits for claim in others):
            raise PodUnschedulableError("pod has unbound immediate PersistentVolumeClaims")
        return PodClaims(bound, tuple(others))

    def _claim(self, pod: Pod, name: str) -> Claim:
        known: Mapping[tuple[str, str], Claim] = read("PersistentVolumeClaims", self._inputs.claims)
        claim = known.get((pod.namespace, name))
        if claim is None and name in pod.own_claims:
            raise PodUnschedulableError(
                f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            )
        if claim is None:
            raise PodUnschedulableError(f'persistentvolumeclaim "{name}" not found')
        if claim.terminating:
            raise PodUnschedulableError(f'persistentvolumeclaim "{name}" is being deleted')
        return claim

    def storage_class(self, claim: Claim) -> StorageClass:
        """Return the class of a claim; one without a class binds at once.

        Raises:
            UnknownPlacementError: the classes were not read, or there is none of that name.
        """
        if not claim.storage_class:
            return StorageClass(name="")
        found = read("StorageClasses", self._inputs.storage_classes).get(claim.storage_class)
        if found is None:
            raise UnknownPlacementError(f"there is no StorageClass {claim.storage_class!r}")
        return found
