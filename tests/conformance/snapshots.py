"""A case's objects as a snapshot file would hold them, and as the model sees them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.wire.collect import Collection, add_document
from tests.conformance.corpus import Case
from tests.functional.objects import node_usage

#: Lists of a case by the kind of their objects.
_LISTS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "PodDisruptionBudget": "pdbs",
    "PriorityClass": "priorityClasses",
    "PersistentVolumeClaim": "pvcs",
    "NodeMetrics": "nodeMetrics",
    "PodMetrics": "podMetrics",
}


def document(case: Case, extra_nodes: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the case's objects as one JSON List of lists, with these nodes added."""
    lists = {kind: list(case.get(key) or ()) for kind, key in _LISTS.items()}
    lists["Node"] += extra_nodes
    lists["NodeMetrics"] += [node_usage(each["metadata"]["name"], "0", "0") for each in extra_nodes]
    items = [{"apiVersion": "v1", "kind": f"{kind}List", "items": each} for kind, each in lists.items()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def filler_nodes(case: Case) -> list[dict[str, Any]]:
    """Return the nodes that bring a case to two ready ones: ready, unschedulable, without room.

    The unit tests call a plugin on one node; a whole cycle wants two.
    """
    return [node(f"filler-{number}") for number in range(2 - len(cluster(case).nodes))]


def node(name: str) -> dict[str, Any]:
    """Return a node that is ready, and takes no pod."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"unschedulable": True},
        "status": {
            "allocatable": {"cpu": "0", "memory": "0", "pods": "0"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def snapshot(case: Case) -> Snapshot:
    collection = Collection()
    add_document(collection, document(case).encode())
    return collection.snapshot(datetime.fromisoformat(case["now"]))


def cluster(case: Case, selector: LabelSelector = EVERYTHING) -> Cluster:
    return Cluster(snapshot(case), selector)


def pod(case: Case) -> Pod:
    return snapshot({"now": case["now"], "pods": [case["pod"]]}).pods[0]


def nodes(case: Case) -> tuple[Node, ...]:
    return snapshot(case).nodes
