"""Waves of a live run, and pods as the API server has them."""

from datetime import UTC, datetime, timedelta

from rebalancer.eviction.causes import as_cause
from rebalancer.eviction.steering import Move, Wave
from rebalancer.kube.marks import SteeringMarks
from tests import make
from tests.functional.objects import pod

BORN = datetime(2026, 1, 15, 12, tzinfo=UTC)
KEYS = SteeringMarks.of("kube-rebalancer/avoid")


def as_object(name, *, owner="web", node="", leaving=None, age=0.0, labels=None, **fields):
    """A pod as the server has it, not Ready; `age` is how long after the first ones, `leaving` its grace period."""
    found = pod(name, node, owner=owner, **{"ready": False, **fields})
    found["metadata"] |= {"creationTimestamp": (BORN + timedelta(seconds=age)).isoformat(), "labels": labels or {}}
    found["metadata"]["ownerReferences"][0]["uid"] = make.owner(owner).uid
    if leaving is not None:
        found["metadata"] |= {"deletionTimestamp": BORN.isoformat(), "deletionGracePeriodSeconds": leaving}
    return found


def move(name, owner="web", expected="n2", likely=("n2", "n3"), labels=None):
    return Move(make.pod(name, owners=owner, labels=labels or {}), expected, likely, as_cause("it should"))


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
