"""Pods of namespaces as they are now, to see where replacements are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec

from rebalancer.cluster.pdb import DisruptionBudget
from rebalancer.cluster.pod import LONG_AGO, Pod
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import ClusterError, Forbidden
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.lists import Items, path_within, read_list
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import KINDS, PATHS

_BUDGET = "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod as it is now.

    Attributes:
        owner: UID of the controller; empty where there is none.
        node: where it is bound; None while it is pending.
        ready: whether it is Ready, or has done its work.
        leaving: whether it is being deleted.
        failed: whether it has ended without doing its work: its controller replaces it, and it may stay as an object.
        grace_seconds: the grace period of its deletion; 0 unless it is being deleted.
    """

    uid: str
    name: str
    owner: str
    node: str | None
    created: datetime
    ready: bool
    leaving: bool
    grace_seconds: float
    failed: bool = False

    @property
    def is_out(self) -> bool:
        """Whether its controller does not count it any more."""
        return self.leaving or self.failed


class _Owner(msgspec.Struct):
    uid: str = ""
    controller: bool = False


class _SeenMetadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: list[_Owner] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] | None = None

    @property
    def is_ready(self) -> bool:
        says_so = any(each.type == "Ready" and each.status == "True" for each in self.conditions or ())
        return says_so or self.phase == "Succeeded"


class _Pod(msgspec.Struct):
    metadata: _SeenMetadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def seen(self) -> SeenPod:
        metadata = self.metadata
        owners = (each.uid for each in metadata.owner_references or () if each.controller)
        return SeenPod(
            uid=metadata.uid,
            name=metadata.name,
            owner=next(owners, ""),
            node=self.spec.node_name or None,
            created=metadata.creation_timestamp or LONG_AGO,
            ready=self.status.is_ready,
            leaving=metadata.deletion_timestamp is not None,
            grace_seconds=metadata.deletion_grace_period_seconds or 0,
            failed=self.status.phase == "Failed",
        )


def see_pods(client: Client, selectors: Mapping[str, str], deadline: Deadline) -> list[SeenPod]:
    """Return pods as they are now.

    Args:
        client: the API server.
        selectors: by namespace, which of its pods: a label selector, empty for all.
        deadline: for all lists together.

    Raises:
        ClusterError: they cannot be listed.
    """
    try:
        return [pod for namespace in sorted(selectors) for pod in _see(client, namespace, selectors, deadline)]
    except ValueError as error:
        raise ClusterError(f"the API server does not answer with a list of pods: {error}") from error


def _see(client: Client, namespace: str, selectors: Mapping[str, str], deadline: Deadline) -> list[SeenPod]:
    path = path_within("Pod", namespace)
    query = {"labelSelector": selector} if (selector := selectors[namespace]) else {}
    return read_list(client, path, lambda: Items("Pod", _Pod, _Pod.seen), query=query, deadline=deadline).items


def budgets_now(client: Client, namespaces: Iterable[str], deadline: Deadline) -> DisruptionBudgets:
    """Return the PDBs of namespaces as they are now.

    Raises:
        ClusterError: they cannot be listed.
    """
    found: list[DisruptionBudget] = []
    for namespace in sorted(set(namespaces)):
        path, new = path_within(_BUDGET, namespace), partial(Collection().collector, _BUDGET)
        try:
            found += read_list(client, path, new, deadline=deadline).items
        except ValueError as error:
            raise ClusterError(f"the API server does not answer with a list of {KINDS[_BUDGET][1]}: {error}") from error
    return DisruptionBudgets(found)


class _ControllerMetadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _Controller(msgspec.Struct):
    metadata: _ControllerMetadata = msgspec.field(default_factory=_ControllerMetadata)

    def ending(self) -> set[str]:
        """Return its UID if it is being deleted, else nothing."""
        return {self.metadata.uid} if self.metadata.deletion_timestamp is not None else set()


def ending_owners(client: Client, pods: Iterable[Pod], deadline: Deadline) -> set[str]:
    """Return the UIDs of the pods' controllers that are being deleted; one of an unknown kind counts as none.

    With `--cascade=orphan` such an owner leaves its pods behind a moment later, and does not replace those that go.

    Raises:
        ClusterError: they cannot be listed for another reason than a missing permission.
    """
    owners = {(pod.namespace, owner.kind, owner.name) for pod in pods if (owner := pod.controller)}
    ending: set[str] = set()
    for namespace, kind, name in sorted(each for each in owners if each[1] in PATHS):
        path, query = path_within(kind, namespace), {"fieldSelector": f"metadata.name={name}"}
        try:
            new = partial(Items, kind, _Controller, _Controller.ending)
            ending |= set().union(*read_list(client, path, new, query=query, deadline=deadline).items)
        except Forbidden:
            continue  # a run may steer without this permission; the version of the pod still protects it
        except ValueError as error:
            raise ClusterError(f"the API server does not answer with a list of {KINDS[kind][1]}: {error}") from error
    return ending


_HASH = "pod-template-hash"


def siblings_of(pods: Iterable[Pod], restarted: Callable[[Pod], object] = lambda _: False) -> Mapping[str, str]:
    """Return by namespace the label selector that finds these pods and their replacements; empty: all pods.

    A ReplicaSet of a Deployment has a hash of its template among the labels that it selects by, so each of its pods
    carries it.  Where all pods of a wave in one namespace carry such a hash, the pods with one of these hashes are
    asked for.  Pods of other controllers need not have a label in common: there all pods of the namespace are.
    Example: a wave takes two pods of ReplicaSets with the hashes 5d9 and 7f4 from `shop`, and one of a StatefulSet from
    `db`.  Looked at are the pods of `shop` with `pod-template-hash in (5d9,7f4)`, and all of `db`.

    A pod that goes by a rollout has a replacement with another hash, so there all pods are asked for.
    """
    hashes: dict[str, set[str]] = {}
    for pod in pods:
        hashes.setdefault(pod.namespace, set()).add("" if restarted(pod) else _template_hash(pod))
    return {name: "" if "" in found else f"{_HASH} in ({','.join(sorted(found))})" for name, found in hashes.items()}


def _template_hash(pod: Pod) -> str:
    owner = pod.controller
    return pod.labels.get(_HASH, "") if owner is not None and owner.kind == "ReplicaSet" else ""
