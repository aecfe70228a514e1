"""Whether a pod could run on a node, and the reason if not."""

from typing import Any

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.eviction.causes import Code, cause
from rebalancer.report.words import text
from rebalancer.scheduling.eligibility import EligibleNodes
from tests.make import cluster, node, pod, selector, snapshot

APART_FROM_DB = PodAffinityTerm("kubernetes.io/hostname", selector(app="db"))


def db(name: str = "db", **fields: Any) -> Pod:
    return pod(name, **{"node": "n2", "labels": {"app": "db"}, **fields})


def why_not(candidate: Pod, there: Node, *residents: Pod) -> str:
    on = cluster([node("n1"), there], [candidate, *residents])
    obstacle = on.index(EligibleNodes).why_not(candidate, there)
    return text(obstacle) if obstacle else ""


@pytest.mark.parametrize(
    ("there", "fields", "reason"),
    [
        pytest.param({"unschedulable": True}, {}, "cordoned", id="a cordoned node"),
        pytest.param({}, {"node_selector": {"disk": "ssd"}}, "node selector or affinity", id="another node selector"),
        pytest.param({}, {"node_terms": ()}, "node selector or affinity", id="a required affinity without terms"),
        pytest.param({"taints": ["k=v:NoSchedule"]}, {}, "taint k=v:NoSchedule is not", id="a NoSchedule taint"),
        pytest.param({"taints": ["k:PreferNoSchedule"]}, {}, "", id="a soft taint is not an obstacle"),
        pytest.param({"cpu": "1"}, {"cpu": "2"}, "insufficient cpu (2000m requested, 1000m free)", id="too little cpu"),
        pytest.param({}, {"requests": {"example.com/gpu": "1"}}, "insufficient example.com/gpu", id="no such device"),
        pytest.param({}, {"requests": {"example.com/gpu": "0"}}, "", id="no such device, and none asked for"),
        pytest.param({"pods": 0}, {}, "no free pod slot", id="no slots"),
    ],
)
def test_each_obstacle_has_its_reason(there: dict, fields: dict, reason: str) -> None:
    """The first obstacle in the documented order is named."""
    found = why_not(pod("a", **fields), node("n2", **there))

    assert found.startswith(reason)
    assert bool(found) is bool(reason)


def test_obstacles_come_in_order() -> None:
    """Cordon, selector, taints, anti-affinity, room."""
    candidate = pod("a", node_selector={"x": "y"}, anti_affinity=(APART_FROM_DB,), cpu="9")
    there = {"unschedulable": True, "labels": {}, "taints": ["k:NoSchedule"]}
    found = []
    for cure in ({"unschedulable": False}, {"labels": {"x": "y"}}, {"taints": []}, {}):
        found.append(why_not(candidate, node("n2", **there), db()))
        there |= cure

    assert [each.split(" ")[0] for each in found] == ["cordoned", "node", "taint", "anti-affinity"]


def test_residents_take_their_requests_overhead_included_and_a_slot() -> None:
    """Active pods count, ended ones do not, terminating ones do."""
    resident = pod("r", node="n2", cpu="3")
    ended = pod("e", node="n2", cpu="3", phase="Succeeded")
    leaving = pod("t", node="n2", cpu="500m", terminating=True)

    assert not why_not(pod("a", cpu="1"), node("n2"), resident, ended)
    assert "1000m free" in why_not(pod("a", cpu="2"), node("n2"), resident, ended)
    assert "500m free" in why_not(pod("a", cpu="1"), node("n2"), resident, leaving)
    assert why_not(pod("a"), node("n2", pods=2), resident, leaving) == "no free pod slot"


def test_room_is_not_asked_on_the_pods_own_node() -> None:
    """It is there already."""
    candidate = pod("a", node="n1", cpu="4")
    on = cluster([node("n1", cpu="1"), node("n2")], [candidate])

    assert on.index(EligibleNodes).fits(candidate, on.nodes[0])


@pytest.mark.parametrize(
    ("term", "resident", "labels", "repelled"),
    [
        pytest.param({"namespaces": ("other",)}, {}, {}, False, id="the term's namespaces replace the pod's own"),
        pytest.param({"topology_key": "zone"}, {}, {}, False, id="a node without the topology label"),
        pytest.param({"topology_key": "zone"}, {}, {"zone": "x"}, True, id="a node with the topology label"),
        pytest.param({"selector": None}, {}, {}, False, id="no selector selects nothing"),
        pytest.param({}, {"phase": "Failed"}, {}, False, id="a pod that has ended"),
    ],
)
def test_own_required_anti_affinity_keeps_a_pod_off_a_node(
    term: dict, resident: dict, labels: dict, repelled: bool
) -> None:
    """Only pods on that very node count."""
    rule = PodAffinityTerm(**{"topology_key": "kubernetes.io/hostname", "selector": selector(app="db"), **term})
    candidate = pod("a", anti_affinity=(rule,))
    found = why_not(candidate, node("n2", labels=labels), db(**resident))

    assert found.startswith("anti-affinity against") is repelled


def test_a_pod_of_the_same_name_does_not_repel() -> None:
    """The descheduler compares names alone."""
    candidate = pod("a", labels={"app": "db"}, anti_affinity=(APART_FROM_DB,))
    namesake = db("a", namespace="default")
    on = cluster([node("n1"), node("n2")], [namesake])

    assert on.index(EligibleNodes).fits(candidate, on.nodes[1])


def test_on_an_overcommitted_node_not_even_a_request_of_zero_fits() -> None:
    """As in the descheduler: zero is more than less than nothing."""
    crowd = pod("crowd", node="n1", cpu="5")
    on = cluster([node("n1", cpu="4"), node("n2", cpu="4")], [crowd])

    asks_nothing = pod("zero", node="n2", cpu="0")

    obstacle = on.index(EligibleNodes).why_not(asks_nothing, on.nodes[0])

    assert obstacle == cause(Code.INSUFFICIENT, resource="cpu", requested=0, free=-1000)


def test_a_node_that_the_policy_does_not_select_takes_pods_however_many_others_are_full() -> None:
    """An evictor may look at all ready nodes; of these the first 64 are asked one by one."""
    full = [node(f"n{number:03}", labels={"pool": "x"}, pods=1) for number in range(100)]
    pods = [pod(f"p{number}", node=each.name) for number, each in enumerate(full)]
    on = Cluster(snapshot([*full, node("other")], pods), selector(pool="x"))

    assert on.index(EligibleNodes).among(on.ready_nodes).first_for(pods[0]) == "other"


def test_a_term_that_names_a_node_tells_it_from_others_like_it() -> None:
    by_name = NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),))
    on = cluster([node("n1"), node("n2")], [])

    assert on.index(EligibleNodes).by_constraints(pod("a", node_terms=(by_name,)).spec) == {"n1"}
