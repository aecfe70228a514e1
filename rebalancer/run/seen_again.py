"""What a live run looks at again while it goes on: pods, PDBs, owners, annotations and nodes as they are now.

All of it raises ClusterError where it cannot be looked at.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import Notes
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import ClusterError, Forbidden
from rebalancer.kube.answers import NotFound
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.halt import Deadline
from rebalancer.kube.lists import Items, path_within, read_list
from rebalancer.kube.node_marks import NODES
from rebalancer.kube.wire import collect
from rebalancer.kube.wire.annotations import OwnerAnnotations
from rebalancer.kube.wire.objects import NodeWire, node
from rebalancer.kube.wire.pages import KINDS, PATHS
from rebalancer.untrusted.documents import decode_json


def _listed(
    client: Client,
    kind: str,
    namespace: str,
    deadline: Deadline,
    query: Mapping[str, str] | None = None,
    new: Callable[[], Any] | None = None,
) -> list[Any]:
    """Return the objects of a kind in a namespace; `new` makes what collects them, else they are a snapshot's."""
    path = path_within(kind, namespace) if namespace else PATHS[kind]
    try:
        new = new or partial(collect.Collection().collector, kind)
        return list(read_list(client, path, new, query=query, deadline=deadline).items)
    except ValueError as error:
        raise ClusterError(f"the API server does not answer with a list of {KINDS[kind][1]}: {error}") from error


def pods_now(client: Client, selectors: Mapping[str, str], until: Callable[[], Deadline]) -> list[Pod]:
    """Return pods as they are now: by namespace, those of a label selector (empty for all)."""
    found: list[Pod] = []
    for namespace, selector in sorted(selectors.items()):
        found += _listed(client, "Pod", namespace, until(), {"labelSelector": selector} if selector else {})
    return found


def budgets_now(client: Client, namespaces: Iterable[str], deadline: Deadline) -> DisruptionBudgets:
    """Return the PDBs of namespaces as they are now."""
    kind = "PodDisruptionBudget"
    return DisruptionBudgets(each for name in sorted(set(namespaces)) for each in _listed(client, kind, name, deadline))


class _ObjectMetadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    annotations: OwnerAnnotations | None = None


class _Object(msgspec.Struct):
    """What is looked at of a namespace, or of an owner of pods."""

    metadata: _ObjectMetadata = msgspec.field(default_factory=_ObjectMetadata)


def _named(client: Client, kind: str, namespace: str, name: str, deadline: Deadline) -> _ObjectMetadata:
    new = partial(Items, kind, _Object, lambda each: each.metadata)
    found = _listed(client, kind, namespace, deadline, {"fieldSelector": f"metadata.name={name}"}, new)
    return next((each for each in found if each.name == name), _ObjectMetadata())


def notes_now(client: Client, kind: str, namespace: str, name: str, deadline: Deadline) -> Notes:
    """Return what the annotations of a namespace, or of an owner in it, say now."""
    annotations = _named(client, kind, "" if kind == "Namespace" else namespace, name, deadline).annotations
    return (annotations.notes() if annotations else None) or Notes()


def ending_owners(client: Client, pods: Iterable[Pod], deadline: Deadline) -> set[str]:
    """Return the UIDs of the pods' controllers that are being deleted; one of an unknown kind counts as none.

    With `--cascade=orphan` such an owner leaves its pods behind a moment later, and does not replace those that go.
    """
    owners = {(pod.namespace, owner.kind, owner.name) for pod in pods if (owner := pod.controller)}
    ending: set[str] = set()
    for namespace, kind, name in sorted(each for each in owners if each[1] in PATHS):
        try:
            found = _named(client, kind, namespace, name, deadline)
        except Forbidden:
            continue  # a run may steer without this permission; the version of the pod still protects it
        if found.deletion_timestamp is not None:
            ending.add(found.uid)
    return ending


def why_closed(client: Client, before: Node, keys: Collection[str], deadline: Deadline) -> str:
    """Return why a node takes no pods any more; empty if it does.

    The plan goes by the nodes as they were read at the beginning.  Meanwhile one may have been deleted or cordoned, may
    not be Ready any more, or others may have given it a taint, which says that they want it to receive nothing.

    An example: n3 had the taint `gpu:NoSchedule` when the run began, and has `drain:PreferNoSchedule` as well now.  It
    receives nothing more in this run; with `gpu:NoSchedule` alone it would.  The `keys` are those of our own soft
    taints, which come and go.
    """
    path = NODES + path_of(before.name)
    try:
        now = node(decode_json(client.get(path, deadline=deadline), NodeWire))
    except NotFound:
        return "it is gone"
    except ValueError as error:
        raise ClusterError(f"the API server does not answer {path} with a Node: {error}") from error
    if now.unschedulable:
        return "it is cordoned"
    if not now.ready:
        return "it is not Ready"
    new = [taint for taint in now.taints if taint.key not in keys and taint not in before.taints]
    return f"it has a new taint, {new[0]}" if new else ""


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
        owner = pod.controller
        is_hashed = owner is not None and owner.kind == "ReplicaSet" and not restarted(pod)
        hashes.setdefault(pod.namespace, set()).add(pod.labels.get(_HASH, "") if is_hashed else "")
    return {name: "" if "" in found else f"{_HASH} in ({','.join(sorted(found))})" for name, found in hashes.items()}
