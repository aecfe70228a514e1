"""Waves of a live run, and pods as the API server has them."""

from datetime import UTC, datetime, timedelta

from rebalancer.cluster.pod import Owner
from rebalancer.eviction.causes import as_cause
from rebalancer.eviction.steering import Move, Wave
from rebalancer.kube.marks import SteeringMarks
from tests import make

BORN = datetime(2026, 1, 15, 12, tzinfo=UTC)
KEYS = SteeringMarks.of("kube-rebalancer/avoid")


def as_object(
    name, *, uid="", owner="web", node=None, ready=False, leaving=None, age=0.0, labels=None, phase="Running"
):
    """A pod as the server has it; `leaving` is its grace period."""
    metadata = {
        "namespace": "default",
        "name": name,
        "uid": uid or f"uid-of-{name}",
        "creationTimestamp": (BORN + timedelta(seconds=age)).isoformat(),
        "labels": labels or {},
        "ownerReferences": [{"kind": "ReplicaSet", "name": owner, "uid": f"uid-of-{owner}", "controller": True}],
    }
    if leaving is not None:
        metadata |= {"deletionTimestamp": BORN.isoformat(), "deletionGracePeriodSeconds": leaving}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, "conditions": conditions},
    }


def move(name, owner="web", expected="n2", likely=("n2", "n3"), labels=None):
    owners = (Owner("ReplicaSet", owner, f"uid-of-{owner}", controller=True),)
    pod = make.pod(name, node="n1", namespace="default", uid=f"uid-of-{name}", owners=owners, labels=labels or {})
    return Move(pod, expected, likely, as_cause("it should"))


def wave(*moves, **avoid):
    return Wave(avoid or {"n1": 2}, moves)


def replace(server, old, new):
    server.remove_pod("default", old)
    server.add(new)


def later(server, time, seconds, act):
    """Act at the first list of pods that comes so many seconds from now."""
    due = time.now + seconds
    server.on("GET", "*/pods", lambda _: act(), times=1, when=lambda _: time.now >= due)


def levels(server):
    return {name: len(server.node(name)["spec"].get("taints", [])) for name in ("n1", "n2", "n3")}
