"""How much work it is to find another node for many pods, and what a name has to say."""

import msgspec
import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.scheduling.eligibility import EligibleNodes, Obstacles
from rebalancer.scheduling.repellers import Repellers
from tests import make

AVOIDS_L = NodeSelectorTerm((Requirement("l", "DoesNotExist"),))
APART = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="web"), ("ns0-0", "ns1-0")),)


@pytest.mark.parametrize("keeps_apart", [(), APART], ids=["too large", "and apart from each other"])
def test_a_hundred_replicas_cost_what_one_costs(keeps_apart) -> None:
    """Each node is asked once whether it has room, and nobody looks at all residents for anti-affinity."""
    nodes = [make.node(f"n{number:02d}", cpu="1", pods=10) for number in range(50)]
    spec = make.pod("big", cpu="2", anti_affinity=keeps_apart).spec
    crowd = [make.pod(f"r{number}", node=nodes[number % 50].name, labels={"app": "db"}) for number in range(400)]
    pods = [msgspec.structs.replace(make.pod(f"p{number}", node="n00"), spec=spec) for number in range(100)]
    cluster = make.cluster(nodes, [*crowd, *pods])
    asked: list[str] = []
    free, residents = cluster.free, cluster.residents
    cluster.free = lambda node: (asked.append(node.name), free(node))[1]  # type: ignore[method-assign]  # counts the work
    cluster.residents = lambda node: (asked.append("residents"), residents(node))[1]  # type: ignore[method-assign]  # too
    others = cluster.index(EligibleNodes).among(nodes)

    assert not any(others.any_for(pod) for pod in pods)
    assert asked == [node.name for node in nodes]


def test_a_pod_on_the_only_node_that_is_remembered_is_found_another() -> None:
    """Two nodes were found; one of them is full by now, and the pod is on the other."""
    nodes = [make.node(f"n{number}", pods=2) for number in range(4)]
    spec = make.pod("a").spec
    pods = [msgspec.structs.replace(make.pod(f"p{number}", node=f"n{number}"), spec=spec) for number in (0, 2)]
    on = make.cluster(nodes, pods)
    others = on.index(EligibleNodes).among(nodes)

    assert others.first_for(pods[0]) == "n1"
    for name in "xy":
        on.place(make.pod(name), nodes[1])
    assert [others.first_for(each) for each in pods] == ["n2", "n0"]


def test_what_a_pod_keeps_apart_from_goes_by_its_name_too() -> None:
    """Of two replicas only the one that is not called like the resident is repelled by it."""
    apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector()),)
    on = make.cluster([make.node("n1"), make.node("n2")], [make.pod("p1", node="n1")])
    namesake = make.pod("p1", node="n2", anti_affinity=apart)
    others = on.index(EligibleNodes).among(on.nodes)

    assert [others.first_for(each) for each in (namesake, msgspec.structs.replace(namesake, name="p2"))] == ["n1", ""]


def test_a_name_that_pods_of_all_namespaces_have_costs_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a term for its own namespace: web-0 of a hundred namespaces are looked at once each."""
    terms, asked = Repellers.terms, []
    monkeypatch.setattr(Repellers, "terms", staticmethod(lambda pod: asked.append(pod) or terms(pod)))

    def asks(number: int) -> int:
        apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="web")),)
        pods = [make.pod("web-0", namespace=f"ns{each}", anti_affinity=apart) for each in range(number)]
        others = make.cluster([make.node("n1"), make.node("n2")], pods).index(EligibleNodes)
        asked.clear()
        assert all(others.among([make.node("n2")]).any_for(pod) for pod in pods)
        return len(asked)

    assert asks(100) == 10 * asks(10)


def test_of_a_pod_with_a_namesake_only_the_nodes_of_that_are_looked_at_again() -> None:
    """All nodes are full; the others are told by what the template has found."""

    def looks(number: int) -> list[str]:
        names = [f"n{each}" for each in range(number)]
        apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector(app="web"), ("one", "two")),)
        fields = {"labels": {"app": "web"}, "cpu": "2", "anti_affinity": apart}
        twins = [make.pod("web-0", node=f"n{each}", namespace=("one", "two")[each], **fields) for each in (0, 1)]
        on = make.cluster([make.node(name, cpu="1", labels={"kubernetes.io/hostname": name}) for name in names], twins)
        looked, residents = [], on.residents
        on.residents = lambda node: (looked.append(node.name), residents(node))[1]  # type: ignore[method-assign]  # counts
        assert not on.index(EligibleNodes).among(on.nodes).any_for(twins[0])
        told = Obstacles(on, on.nodes).of(twins[0])
        assert told["obstacles"] == [{"code": "Insufficient", "resource": "cpu", "count": number - 1}]
        return looked

    assert looks(30) == looks(3)


def test_a_node_that_the_policy_does_not_select_takes_pods_however_many_others_are_full() -> None:
    """An evictor may look at all ready nodes; of these the first 64 are asked one by one."""
    full = [make.node(f"n{number:03}", labels={"pool": "x"}, pods=1) for number in range(100)]
    pods = [make.pod(f"p{number}", node=each.name) for number, each in enumerate(full)]
    on = Cluster(make.snapshot([*full, make.node("other")], pods), make.selector(pool="x"))

    assert on.index(EligibleNodes).among(on.ready_nodes).first_for(pods[0]) == "other"


def test_specs_that_ask_for_what_no_node_has_are_one_to_all_nodes() -> None:
    on = make.cluster([make.node("n1"), make.node("n2", taints=["k"])], [])
    plain, tolerant, evasive, avowed = (
        make.pod("p", tolerations=tolerations, node_terms=terms).spec
        for tolerations, terms in (((), None), (("l",), None), ((), (AVOIDS_L,)), (("k",), None))
    )
    eligible = on.index(EligibleNodes)

    assert eligible.constraints(plain) is eligible.constraints(tolerant) is eligible.constraints(evasive)
    assert [eligible.by_constraints(each) for each in (plain, avowed)] == [{"n1"}, {"n1", "n2"}]
