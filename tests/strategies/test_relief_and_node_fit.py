"""nodeFit and relief look at the same future, and a strategy's expectations end with it."""

from tests.make import cluster as plain_cluster
from tests.make import decide, evicted, node, pod, refused
from tests.measured import cluster, low_anywhere
from tests.measured import node as measured_node
from tests.measured import pod as measured_pod
from tests.unit.engine.stand_ins import Scripted


def test_room_that_pods_are_expected_to_take_is_taken_for_node_fit_too():
    """n2 has room by requests for one of the two pods that should go there."""
    nodes = [measured_node("n1"), measured_node("n2", pods=1)]
    pods = [measured_pod(name) for name in ("a", "b")]
    on = cluster(nodes, pods, {"a": 15, "b": 14}, rest={"n1": 45})

    ledger = decide(on, low_anywhere(), evictor={"nodeFit": True})

    assert (evicted(ledger), refused(ledger)) == (["a"], {"b": "NodeFit"})


def test_what_a_strategy_expects_is_forgotten_with_it():
    """What it removed is back, and what it placed is gone; what was evicted stays gone."""
    nodes, pods = [node("n1"), node("n2")], [pod("a"), pod("b"), pod("c")]
    on = plain_cluster(nodes, pods)
    seen = []

    def dream(cluster, evict):
        evict(pods[0], "test")
        cluster.remove(pods[1])
        cluster.place(pods[1], cluster.nodes[1])
        seen.append((cluster.pods(), cluster.expected_on(cluster.nodes[1])))

    def look(cluster, evict):
        seen.append((cluster.pods(), cluster.expected_on(cluster.nodes[1])))

    decide(on, Scripted(dream), Scripted(look))

    assert seen == [((pods[2],), (pods[1],)), ((pods[1], pods[2]), ())]
