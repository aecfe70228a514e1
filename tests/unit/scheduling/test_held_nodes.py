"""Nodes that are held or marked: strategies see no taint there, the simulated scheduler sees what the real one does."""

from datetime import timedelta

import pytest

from rebalancer.balancing.steering.foresight import Foresight
from rebalancer.cluster.cluster import Cluster
from rebalancer.policy.moving import HOLD_KEY, PRESSURE_KEY
from rebalancer.scheduling.simulation import Simulation
from tests import make

UNTIL = make.NOW + timedelta(minutes=15)
TAINT = f"{HOLD_KEY}:PreferNoSchedule"
PRESSURE = f"{PRESSURE_KEY}=cpu:PreferNoSchedule"
KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")


def cluster(more=(), **fields):
    """An empty n1, and n2 with pods; fields of n1."""
    pod = make.pod("a", node="n2", cpu="1", owners=(make.owner("a", "StatefulSet"),))
    nodes = (make.node("n1", **fields), make.node("n2"), *more)
    snapshot = make.cluster(nodes, [pod, make.pod("b", node="n2", cpu="2")]).snapshot
    return Cluster(snapshot.unmarked(KEYS, HOLD_KEY, PRESSURE_KEY)), pod


HARD, HARD_PRESSURE = f"{HOLD_KEY}:NoSchedule", f"{PRESSURE_KEY}=cpu:NoSchedule"
SPOT = "spot:PreferNoSchedule"
#: Of n1: its taints and until when it is held; where the pod goes, which has more room there; the taints that
#: strategies see, those that the scheduler sees, and whether the node is held.
NODES = {
    "held": ([TAINT, SPOT], UNTIL, "n2", ["spot"], [HOLD_KEY, "spot"], True),
    "marked": ([PRESSURE, SPOT], UNTIL, "n2", ["spot"], [PRESSURE_KEY, "spot"], False),
    "held and marked": ([TAINT, PRESSURE], UNTIL, "n2", [], [HOLD_KEY, PRESSURE_KEY], True),
    "neither": ([], None, "n1", [], [], False),
    "held until now": ([TAINT], make.NOW, "n1", [], [], False),
    "held until a second ago": ([TAINT], make.NOW - timedelta(seconds=1), "n1", [], [], False),
    "no annotation explains the taint: a live run takes it off": ([TAINT], None, "n1", [], [], False),
    "the taint is gone: somebody wants it to receive pods": ([], UNTIL, "n1", [], [], False),
    "the taint is of a run that steered": ([f"{KEYS[0]}:PreferNoSchedule"], None, "n1", [], [], False),
    "a hard taint of that key is not ours": ([HARD], UNTIL, "n2", [HOLD_KEY], [HOLD_KEY], False),
    "nor is one of pressure": ([HARD_PRESSURE], None, "n2", [PRESSURE_KEY], [PRESSURE_KEY], False),
}


@pytest.mark.parametrize(("taints", "until", "goes", "seen", "scheduled", "held"), NODES.values(), ids=NODES)
def test_who_sees_which_taints(taints, until, goes, seen, scheduled, held):
    """The scheduler is turned away, and strategies do not see it."""
    on, pod = cluster(taints=taints, held_until=until)
    node = on.node("n1")

    assert on.index(Simulation).ask(pod).nodes == (goes,)
    assert [each.key for each in node.taints] == seen
    assert [each.key for each in node.as_scheduled.taints] == scheduled
    assert on.held == ({"n1"} if held else set())


@pytest.mark.parametrize("level", [1, 2])
def test_with_steering_it_counts_as_one_of_the_taints(level):
    """So a held node and another one of the same level lose as many points."""
    on, pod = cluster(more=[make.node("n3")], taints=[TAINT], held_until=UNTIL)
    foresight = Foresight(on, KEYS)

    with foresight.avoiding({"n1": level, "n3": level}):
        answer = foresight.simulation.ask(pod)

    lost = [answer.scores(name)["TaintToleration"] for name in ("n1", "n3", "n2")]
    assert lost == [0, 0, 300]


def test_a_label_and_taint_that_the_annotation_names_are_hidden_too() -> None:
    """And only with that very value: what others have set under the key stays."""
    pressure = ("status=presure", "example.com/hot=cpu")
    labels = {"status": "presure", "zone": "a"}
    on, _ = cluster(labels=labels, taints=["example.com/hot=cpu:PreferNoSchedule"], pressure=pressure)
    others, _ = cluster(
        labels={"status": "retired"}, taints=["example.com/hot=mine:PreferNoSchedule"], pressure=pressure
    )

    seen = on.node("n1")
    assert ("status" in seen.labels, seen.labels["zone"], seen.taints) == (False, "a", ())
    assert seen.as_scheduled.labels["status"] == "presure"
    assert others.node("n1").labels["status"] == "retired"
    assert len(others.node("n1").taints) == 1
