"""Objects as an API server holds them, and policies: a test says only what it is about."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from strategies import BUILTIN

Object = dict[str, Any]

#: PodLifeTime that picks every pod older than a minute, the oldest first.
OLD = ("PodLifeTime", {"maxPodLifeTimeSeconds": 60})

BALANCE = {each.name for each in BUILTIN if each.point == "balance"}
DAY = 86400
METRICS = "metrics.k8s.io/v1beta1"


def policy(*strategies: tuple[str, Object], name: str = "tidy", evictor: Object | None = None, **top: Any) -> Object:
    """A policy of one profile; strategies as (name, args), `top` as a policy spells it."""
    configs = [{"name": each, "args": args} for each, args in strategies]
    points: Object = {}
    for each, _ in strategies:
        points.setdefault("balance" if each in BALANCE else "deschedule", {"enabled": []})["enabled"].append(each)
    evictors = [{"name": "DefaultEvictor", "args": evictor}] if evictor is not None else []
    profile = {"name": name, "pluginConfig": [*evictors, *configs], "plugins": points}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", **top, "profiles": [profile]}


#: Evicts one pod, the oldest.
ONE = policy(OLD, maxNoOfPodsToEvictTotal=1)


def node(
    name: str, *, ready: bool = True, taints: Iterable[Object] = (), cpu: str = "4", memory: str = "16Gi"
) -> Object:
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(
    name: str,
    node: str = "n1",
    *,
    namespace: str = "default",
    uid: str = "",
    age: float = DAY,
    owner: str = "web",
    cpu: str = "100m",
    phase: str = "Running",
    ready: bool = True,
    restarts: int = 0,
    **spec: Any,
) -> Object:
    """A pod of a ReplicaSet; `age` in seconds, more of its spec by name."""
    born = (datetime.now(UTC) - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{namespace}-{name}",
            "labels": {"app": owner},
            "creationTimestamp": born,
            "ownerReferences": owners if owner else [],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {
            "phase": phase,
            "startTime": born,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "main", "restartCount": restarts, "ready": ready}],
        },
    }


def node_usage(name: str, cpu: str, memory: str = "1Gi", **fields: Any) -> Object:
    usage = {"cpu": cpu, "memory": memory}
    return {"apiVersion": METRICS, "kind": "NodeMetrics", "metadata": {"name": name}, "usage": usage, **fields}


def pod_usage(name: str, cpu: str, memory: str = "1Mi", **fields: Any) -> Object:
    """What metrics-server says of a pod; `node_usage` of a node."""
    containers = [{"name": "main", "usage": {"cpu": cpu, "memory": memory}}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": METRICS, "kind": "PodMetrics", "metadata": metadata, "containers": containers, **fields}


def replica_set(name: str, *, cpu: str = "100m", namespace: str = "default") -> Object:
    """The owner of pods of this name (see `pod`), with its template."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def pdb(name: str, *, allowed: int, app: str = "web", namespace: str = "default") -> Object:
    return {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": allowed,
            "observedGeneration": 1,
            "currentHealthy": 3,
            "desiredHealthy": 3 - allowed,
        },
    }


def two_nodes_with(*pods: Object) -> list[Object]:
    """The smallest cluster in which pods can move."""
    return [node("n1"), node("n2"), *pods]


def old_pods(*names: str, **fields: Any) -> list[Object]:
    """Pods that OLD picks, in this order."""
    return [pod(name, age=(len(names) - place) * DAY, **fields) for place, name in enumerate(names)]
