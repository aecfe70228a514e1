"""How much work it is to find another node for many pods, and what a name has to say."""

import msgspec
import pytest

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.scheduling.eligibility import EligibleNodes
from tests import make

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


def test_what_a_pod_keeps_apart_from_goes_by_its_name_too() -> None:
    """Of two replicas only the one that is not called like the resident is repelled by it."""
    apart = (PodAffinityTerm("kubernetes.io/hostname", make.selector()),)
    on = make.cluster([make.node("n1"), make.node("n2")], [make.pod("p1", node="n1")])
    namesake = make.pod("p1", node="n2", anti_affinity=apart)
    others = on.index(EligibleNodes).among(on.nodes)

    assert [others.first_for(each) for each in (namesake, msgspec.structs.replace(namesake, name="p2"))] == ["n1", ""]
