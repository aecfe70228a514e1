"""What the snapshot keeps in mind is what working it out anew would give, whatever has left since."""

from random import Random
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.scheduling import eligibility, fit
from rebalancer.scheduling.eligibility import EligibleNodes, Obstacles
from tests import make
from tests.properties.crowds import NODES, pods

HOST = "kubernetes.io/hostname"
APART = PodAffinityTerm(HOST, make.selector(app="x"))


def anew(pod, node, remaining):
    """Every rule asked again, over the pods that remain."""
    residents = [each for each in remaining if each.node == node.name and each.active]
    used = {"pods": len(residents)}
    for each in residents:
        for name, amount in each.spec.requests.items():
            used[name] = used.get(name, 0) + amount

    def free(name):
        return node.allocatable.get(name, 0) - used.get(name, 0)

    return (
        fit.why_placement_fails(pod.spec, node)
        or fit.why_repelled(pod, node, sorted(residents, key=lambda each: each.age_order))
        or (None if pod.node == node.name else fit.why_too_full(pod.spec, free))
    )


@given(NODES, pods(), st.sampled_from((0, 1, 64)), st.data())
def test_fit_is_the_same_after_any_removals(nodes, crowd, one_by_one, data):
    """Asked before and after, so that anything kept too long would show; also why pods fit nowhere."""
    with patch.object(eligibility, "_ONE_BY_ONE", one_by_one):  # nodes that are asked before the index of room is
        check(nodes, crowd, data)


def check(nodes, crowd, data):
    crowd += [make.pod(f"shy{number}", node=each.name, anti_affinity=(APART,)) for number, each in enumerate(nodes)]
    on = make.cluster(nodes, crowd)
    eligible = on.index(EligibleNodes)
    others, obstacles = eligible.among(nodes), Obstacles(on, nodes)
    leaving = data.draw(st.lists(st.sampled_from(crowd), unique=True), label="leaving")

    for gone in [None, *leaving]:
        if gone is not None:
            on.evicted(gone)
        remaining = [pod for pod in crowd if on.contains(pod)]
        for pod in crowd:
            expected = {node.name: anew(pod, node, remaining) for node in nodes}
            assert {node.name: eligible.why_not(pod, node) for node in nodes} == expected
            whys = [why for name, why in expected.items() if name != pod.node]
            assert others.any_for(pod) == (not all(whys))
            if all(whys):
                assert obstacles.of(pod) == {"nodes": len(whys), **fit.obstacles(whys)}


def crowded(dice: Random):
    """A few nodes with hardly any room, and pods that keep apart from some of the others there."""
    nodes = [make.node(f"n{number}", cpu="1", pods=dice.randint(1, 4)) for number in range(dice.randint(2, 6))]
    templates = [
        make.pod(
            "template",
            cpu=dice.choice(("100m", "400m")),
            labels={"app": dice.choice("xyz")},
            anti_affinity=dice.choice(((), (PodAffinityTerm(HOST, make.selector(app=dice.choice("xyz")), near),))),
        )
        for near in ((), (), ("a",), ("a", "b"), ("b",))
    ]
    pods = [  # some have the same name, which keeps no pod apart from its namesake
        replace(
            dice.choice(templates),
            name=f"p{number % 5}",
            namespace=f"{'ab'[number // 5 % 2]}{number // 10 or ''}",
            node=dice.choice(nodes).name,
        )
        for number in range(dice.randint(2, 14))
    ]
    return nodes, pods


@given(st.integers(0, 2**32).map(Random), st.sampled_from((0, 1, 64)))
def test_where_there_is_hardly_room_each_pod_is_told_the_same_as_by_asking_every_node(dice, one_by_one):
    nodes, pods = crowded(dice)
    on = make.cluster(nodes, pods)
    eligible = on.index(EligibleNodes)
    others, obstacles = eligible.among(nodes), Obstacles(on, nodes)
    with patch.object(eligibility, "_ONE_BY_ONE", one_by_one):
        for gone in [None, *dice.sample(pods, len(pods) // 2)]:
            if gone is not None:
                on.evicted(gone)
                if dice.random() < 0.5:
                    on.place(gone, dice.choice(nodes))
            for pod in [each for each in pods if on.contains(each) and dice.random() < 0.7]:
                whys = [eligible.why_not(pod, node) for node in nodes if node.name != pod.node]
                fitting = {node.name for node in nodes if node.name != pod.node and eligible.fits(pod, node)}
                assert len(fitting) == whys.count(None)
                assert others.first_for(pod) in fitting or not fitting
                assert others.any_for(pod) == (not all(whys))
                if all(whys):
                    assert obstacles.of(pod) == {"nodes": len(whys), **fit.obstacles(whys)}
