"""All pods placed anew: what is bound stays, the rest is the scheduler's, and nothing is left to chance."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import Placement, PodAffinityTerm
from rebalancer.scheduling.from_scratch import EmptyCluster
from tests import make

HOST = "kubernetes.io/hostname"
NODES = [make.node(name, cpu="4", memory="8Gi") for name in ("n1", "n2", "n3")]

amounts = st.tuples(st.integers(1, 40), st.integers(1, 40))


@st.composite
def pods(draw):
    drawn = draw(st.lists(st.tuples(amounts, st.booleans()), max_size=30))
    apart = (PodAffinityTerm(HOST, make.selector(app="apart")),)
    return [
        make.pod(
            f"p{number}",
            node="n1",
            cpu=f"{cpu}00m",
            memory=f"{memory}00Mi",
            owners=f"o{number}",
            **({"labels": {"app": "apart"}, "anti_affinity": apart} if alone else {}),
        )
        for number, ((cpu, memory), alone) in enumerate(drawn)
    ]


@given(pods())
def test_no_node_is_overfull_and_every_pod_has_one_fate(found):
    """Requests of the pods of a node fit on it, rules hold, and a pod that fits nowhere would indeed not fit."""
    snapshot = make.snapshot(NODES, found)
    for placed in (EmptyCluster(snapshot, found).scheduled(), EmptyCluster(snapshot, found).packed()):
        assert placed.nodes.keys().isdisjoint(placed.nowhere)
        assert {*placed.nodes, *placed.nowhere} == {pod.key for pod in found}
        room = {node.name: Counter(node.allocatable) for node in NODES}
        apart = Counter(placed.nodes.get(pod.key) for pod in found if pod.labels)
        for pod in found:
            if node := placed.nodes.get(pod.key):
                room[node].subtract(pod.spec.requests)
        assert all(left >= 0 for each in room.values() for left in each.values())
        assert all(count == 1 for node, count in apart.items() if node)
        for pod in found:
            if pod.key in placed.nowhere:
                wanted = pod.spec.requests.items()
                assert all(
                    any(room[name][key] < amount for key, amount in wanted) or (pod.labels and apart[name])
                    for name in room
                )


def test_the_same_cluster_gives_the_same_picture_in_any_order():
    """Ties are drawn from names."""
    found = [make.pod(f"p{number}", cpu="500m", owners=f"o{number}") for number in range(12)]
    snapshot = make.snapshot(NODES, found)

    assert EmptyCluster(snapshot, found).scheduled() == EmptyCluster(snapshot, found[::-1]).scheduled()


def test_a_pod_waits_for_the_one_that_it_wants_to_be_near():
    """The pod that comes first by age has to be where a later one is."""
    near = Placement(affinity=(PodAffinityTerm(HOST, make.selector(app="db")),))
    first = make.pod("web", age=900, placement=near)
    second = make.pod("db", age=60, labels={"app": "db"}, owners="db")
    snapshot = make.snapshot(NODES, [first, second])

    placed = EmptyCluster(snapshot, snapshot.pods).scheduled()

    assert placed.nodes[first.key] == placed.nodes[second.key]
    assert not placed.nowhere


def test_pods_of_daemon_sets_and_of_unknown_schedulers_stay():
    """The first are on their nodes by name, as static pods are; of the others nobody knows."""
    agent = make.pod("agent", node="n2", owners=[make.owner("agent", "DaemonSet")], cpu="3")
    static = make.pod("static", node="n2", static=True, cpu="1", priority=-5)
    strange = make.pod("strange", node="n3", placement=Placement(scheduler="mine"), cpu="3")
    big = make.pod("big", node="n2", cpu="3", owners="big")
    snapshot = make.snapshot(NODES, [big, strange, agent, static])

    placed = EmptyCluster(snapshot, snapshot.pods).scheduled()
    packed = EmptyCluster(snapshot, snapshot.pods).packed()

    assert [placed.nodes[each.key] for each in (agent, static, strange, big)] == ["n2", "n2", "n3", "n1"]
    assert placed.stayed == {strange.key: "nothing is known of the scheduler 'mine'"}
    assert packed.used == [packed.nodes[big.key]]


def test_the_more_important_come_first_in_every_history():
    """Three have room, by their priority and not by their names."""
    found = [make.pod(f"p{number}", cpu="3", owners=f"o{number}", priority=number) for number in range(5)]
    snapshot = make.snapshot(NODES, found)

    for history in range(5):
        left = EmptyCluster(snapshot, found).scheduled(history).nowhere
        assert sorted(left) == [("default", "p0"), ("default", "p1")]


def test_as_few_nodes_as_the_pods_fit_on():
    """Six pods of two cores need three nodes of four; a seventh fits nowhere."""
    found = [make.pod(f"p{number}", cpu="2", owners=f"o{number}") for number in range(7)]
    snapshot = make.snapshot(NODES, found)

    assert len(EmptyCluster(snapshot, found[:4]).packed().used) == 2
    assert list(EmptyCluster(snapshot, found).packed().nowhere) == [("default", "p6")]
