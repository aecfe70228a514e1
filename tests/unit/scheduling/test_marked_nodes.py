"""Marks of pressure are for the scheduler: the simulated one sees them, strategies do not."""

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.policy.moving import PRESSURE_KEY
from rebalancer.scheduling.simulation import Simulation
from tests import make


def marked(**fields):
    """A cluster of an empty node that is marked, and one with a pod that would else go there."""
    nodes = (make.node("n1", **fields), make.node("n2"))
    pod = make.pod("a", node="n2", cpu="1", owners=(make.owner("a", "StatefulSet"),))
    snapshot = make.cluster(nodes, [pod, make.pod("b", node="n2", cpu="2")]).snapshot
    return Cluster(snapshot.without_pressure(PRESSURE_KEY)), pod


def test_a_soft_taint_turns_the_scheduler_away() -> None:
    """Without it the pod goes to the node with more room; a node of strategies has no taint either way."""
    plain, pod = marked()
    tainted, same = marked(taints=[f"{PRESSURE_KEY}=cpu:PreferNoSchedule", "spot:PreferNoSchedule"])

    assert plain.index(Simulation).ask(pod).nodes == ("n1",)
    assert tainted.index(Simulation).ask(same).nodes == ("n2",)
    assert [each.key for each in tainted.node("n1").taints] == ["spot"]


def test_a_label_and_taint_that_the_annotation_names_are_hidden_too() -> None:
    """And only with that very value: what others have set under the key stays."""
    pressure = ("status=presure", "example.com/hot=cpu")
    labels = {"status": "presure", "zone": "a"}
    cluster, _ = marked(labels=labels, taints=["example.com/hot=cpu:PreferNoSchedule"], pressure=pressure)
    others, _ = marked(
        labels={"status": "retired"}, taints=["example.com/hot=mine:PreferNoSchedule"], pressure=pressure
    )

    seen = cluster.node("n1")
    assert ("status" in seen.labels, seen.labels["zone"], seen.taints) == (False, "a", ())
    assert seen.as_scheduled.labels["status"] == "presure"
    assert others.node("n1").labels["status"] == "retired"
    assert len(others.node("n1").taints) == 1


def test_a_hard_taint_of_that_key_is_nobody_elses_to_hide() -> None:
    """Ours are soft."""
    cluster, _ = marked(taints=[f"{PRESSURE_KEY}=cpu:NoSchedule"])

    assert len(cluster.node("n1").taints) == 1
    assert msgspec.structs.asdict(cluster.node("n1"))["as_marked"] is None
