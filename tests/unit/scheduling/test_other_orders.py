"""Where replacements land that do not come in the order of the evictions, by example."""

from collections.abc import Sequence

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.other_orders import OtherOrders
from rebalancer.scheduling.simulation import Simulation
from tests import make

SET, STATEFUL, JOB = "ReplicaSet", "StatefulSet", "Job"


def going(name: str, kind: str = "ReplicaSet", of: str = "", cores: float = 1) -> Pod:
    size = {"cpu": f"{cores * 1000:.0f}m", "memory": "1Gi"}
    return make.pod(name, node="n1", owners=(make.owner(of or name, kind),), **size)


def nodes_for(*pods: Pod, cores: Sequence[float] = (6, 5.6, 3)) -> Cluster:
    """n1, cordoned, has these pods; n2 has the most room, then n3, then n4, unless told otherwise."""
    nodes = [make.node("n1", unschedulable=True)]
    nodes += [make.node(f"n{number}", cpu=f"{each * 1000:.0f}m", memory="16Gi") for number, each in enumerate(cores, 2)]
    return make.cluster(nodes, pods)


def in_turn(cluster: Cluster, *pods: Pod) -> dict[Pod, str]:
    """Let pods go in turn, note where each is foreseen, and return where the plan counts on them."""
    expected: dict[Pod, str] = {}
    with cluster.scope():
        for pod in pods:
            found = cluster.index(Simulation).ask(pod).nodes
            cluster.index(OtherOrders).note(pod, found)
            node = cluster.node(found[0])
            assert node
            cluster.place(pod, node)
            cluster.evicted(pod)
            expected[pod] = node.name
    return expected


def test_one_that_waits_for_the_end_of_its_old_pod_meets_those_that_are_evicted_later() -> None:
    """In turn db-0 is on n2; web-1 comes while db-0 still ends, and takes n2 first."""
    database, web = going("db-0", "StatefulSet"), going("web-1")
    cluster = nodes_for(database, web)
    assert cluster.index(Simulation).ask(database).nodes == ("n2",)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, database, web))

    assert found[database] == {"n2", "n3"}


def test_of_two_that_are_made_at_once_either_may_come_first() -> None:
    """The first one on n2 and the second one on n3, or the other way round."""
    pods = going("a"), going("b")
    cluster = nodes_for(*pods)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, *pods))

    assert [found[pod] for pod in pods] == [{"n2", "n3"}] * 2


def test_a_job_may_come_before_or_after_those_that_come_at_once() -> None:
    """Evicted last, it may still be the first to come."""
    web, job = going("web"), going("import", "Job")
    cluster = nodes_for(web, job)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, web, job))

    assert found[job] == {"n2", "n3"}


def test_replacements_that_are_alike_keep_their_order() -> None:
    """Whichever of the two comes first is taken for the replacement of the pod that went first."""
    pods = going("a", of="web"), going("b", of="web")
    cluster = nodes_for(*pods)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, *pods))

    assert found == {pods[0]: {"n2"}, pods[1]: {"n3"}}


def test_those_of_a_stateful_set_are_told_apart_by_their_names() -> None:
    """The second one may be the first to end."""
    pods = going("db-0", "StatefulSet", of="db"), going("db-1", "StatefulSet", of="db")
    cluster = nodes_for(*pods)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, *pods))

    assert found[pods[0]] == {"n2", "n3"}


def test_one_that_goes_alone_is_where_it_was_foreseen_and_nothing_is_asked() -> None:
    """There is no other order."""
    alone = going("a")
    cluster = nodes_for(alone)
    expected = in_turn(cluster, alone)
    other_orders = cluster.index(OtherOrders)

    assert other_orders.landings(expected) == {alone: {"n2"}}
    assert other_orders.questions == 0


def test_one_that_was_not_noted_is_there_before_all_others() -> None:
    """Its wave was waited for: it is on n2, and no order changes that."""
    steered, web, other = going("steered"), going("web"), going("other", "StatefulSet")
    cluster = nodes_for(steered, web, other)
    expected = {steered: "n2", **in_turn(cluster, web, other)}
    cluster.evicted(steered)

    found = cluster.index(OtherOrders).landings(expected)

    assert steered not in found
    assert found[other] == {"n2", "n3"}
    assert "n4" not in found[web]


def test_what_was_foreseen_in_turn_is_always_named() -> None:
    """Though no order leads there: after a tie, for example, it may still land there."""
    pods = going("a"), going("b")
    cluster = nodes_for(*pods)
    expected = in_turn(cluster, *pods)
    cluster.index(OtherOrders).note(pods[0], ("n2", "n4"))

    assert cluster.index(OtherOrders).landings(expected)[pods[0]] == {"n2", "n3", "n4"}


@pytest.mark.parametrize(
    ("cores", "pods", "named"),
    [
        pytest.param(
            (4, 6, 6), [(JOB, 3), (JOB, 2), (SET, 1)], ["n3 n4", "n3 n4", "n2 n3 n4"], id="in turn, then Jobs"
        ),
        pytest.param((6, 2, 4), [(SET, 3), (SET, 2), (STATEFUL, 2)], ["n2 n4", "n2 n4", "n2"], id="in reverse"),
        pytest.param((3, 3, 4), [(STATEFUL, 2), (SET, 2), (JOB, 3)], ["n2 n3 n4"] * 3, id="those that wait in reverse"),
        pytest.param(
            (2, 5, 3), [(STATEFUL, 1), (SET, 0.5), (SET, 0.5)], ["n3", *["n2 n3 n4"] * 2], id="once all are gone"
        ),
        pytest.param((5, 3, 5.6), [(JOB, 3), (STATEFUL, 1)], ["n2 n4"] * 2, id="once all are gone, in reverse"),
    ],
)
def test_each_order_that_is_played_names_nodes_that_the_others_do_not(
    cores: Sequence[float], pods: Sequence[tuple[str, float]], named: Sequence[str]
) -> None:
    """One of the five leads there: n2, n3 and n4 have so many cores, and pods, evicted in turn, request so many."""
    gone = [going(f"p{number}", kind, cores=each) for number, (kind, each) in enumerate(pods)]
    cluster = nodes_for(*gone, cores=cores)

    found = cluster.index(OtherOrders).landings(in_turn(cluster, *gone))

    assert [" ".join(sorted(found[pod])) for pod in gone] == named


def test_it_takes_six_questions_for_each_pod_and_leaves_no_trace() -> None:
    """However many go: nothing is tried for pairs of them."""
    kinds = ("ReplicaSet", "StatefulSet", "Job")
    pods = [going(f"p{number}", kinds[number % 3]) for number in range(9)]
    stays = going("stays")
    cluster = nodes_for(*pods, stays)
    expected = in_turn(cluster, *pods)
    before = cluster.index(Simulation).ask(stays)
    other_orders = cluster.index(OtherOrders)

    other_orders.landings(expected)

    assert other_orders.questions == 6 * len(pods)
    cluster.index(Simulation).left(stays, 1)  # answers that were kept are discarded
    cluster.index(Simulation).left(stays, -1)
    assert cluster.index(Simulation).ask(stays) == before
