"""Nodes that are held or marked: strategies see no taint there, the simulated scheduler sees what the real one does."""

from datetime import timedelta

import msgspec
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


@pytest.mark.parametrize(("taint", "held"), [(TAINT, {"n1"}), (PRESSURE, set())], ids=["held", "marked"])
def test_the_taint_turns_the_scheduler_away_and_strategies_do_not_see_it(taint, held):
    """Without it the pod goes to the node with more room."""
    (plain, pod), (on, same) = cluster(), cluster(taints=[taint, "spot:PreferNoSchedule"], held_until=UNTIL)

    assert plain.index(Simulation).ask(pod).nodes == ("n1",)
    assert on.index(Simulation).ask(same).nodes == ("n2",)
    assert [each.key for each in on.node("n1").taints] == ["spot"]
    assert on.held == held


@pytest.mark.parametrize("until", [None, make.NOW, make.NOW - timedelta(seconds=1)])
def test_one_that_has_expired_holds_nothing(until):
    """Nor does one that no annotation explains: a live run takes it off before it evicts."""
    on, pod = cluster(taints=[TAINT], held_until=until)

    assert on.index(Simulation).ask(pod).nodes == ("n1",)
    assert (on.held, on.node("n1").taints, on.node("n1").held_until) == (set(), (), None)


def test_a_node_that_has_lost_the_taint_is_not_held():
    """Somebody wants it to receive pods."""
    on, _ = cluster(held_until=UNTIL)

    assert on.held == set()


def test_the_taint_of_a_run_that_steered_is_gone_altogether():
    on, pod = cluster(taints=[f"{KEYS[0]}:PreferNoSchedule"])

    assert on.index(Simulation).ask(pod).nodes == ("n1",)
    assert on.node("n1").taints == ()


def test_a_hard_taint_of_that_key_is_not_ours():
    on, _ = cluster(taints=[f"{HOLD_KEY}:NoSchedule"], held_until=UNTIL)

    assert len(on.node("n1").taints) == 1
    assert on.held == set()


def test_the_scheduler_sees_a_hold_and_pressure_together():
    """Of a node that carries both."""
    on, _ = cluster(taints=[TAINT, PRESSURE], held_until=UNTIL)

    assert on.node("n1").taints == ()
    assert [each.key for each in on.node("n1").as_scheduled.taints] == [HOLD_KEY, PRESSURE_KEY]


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


def test_a_hard_taint_of_that_key_is_nobody_elses_to_hide() -> None:
    """Ours are soft."""
    on, _ = cluster(taints=[f"{PRESSURE_KEY}=cpu:NoSchedule"])

    assert len(on.node("n1").taints) == 1
    assert msgspec.structs.asdict(on.node("n1"))["as_marked"] is None
