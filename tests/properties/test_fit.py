"""What the snapshot keeps in mind is what working it out anew would give, whatever has left and come since."""

from random import Random
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.scheduling import eligibility, fit
from rebalancer.scheduling.eligibility import EligibleNodes, Obstacles
from tests import make
from tests.properties.clusters import NODES, pods

HOST = "kubernetes.io/hostname"
APART = PodAffinityTerm(HOST, make.selector(app="x"))
DICE = st.integers(0, 2**32).map(Random)


def anew(pod, node, residents):
    """Every rule asked again, over the pods that are there."""

    def free(name):
        used = sum(each.spec.requests.get(name, 0) for each in residents)
        return node.allocatable.get(name, 0) - (len(residents) if name == "pods" else used)

    return (
        fit.why_placement_fails(pod.spec, node)
        or fit.why_repelled(pod, node, residents)
        or (None if pod.node == node.name else fit.why_too_full(pod.spec, free))
    )


@st.composite
def mixed(draw):
    """Pods with peculiarities, and one on each node that keeps apart from some of them."""
    nodes, crowd = draw(NODES), draw(pods())
    return nodes, [*crowd, *(make.pod(f"shy-{each.name}", node=each.name, anti_affinity=(APART,)) for each in nodes)]


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


@example(crowded(Random(150)), 0, Random(118086))  # a pod that is expected on the only node that takes it
@given(st.one_of(mixed(), DICE.map(crowded)), st.sampled_from((0, 1, 64)), DICE)
def test_fit_is_what_asking_every_node_anew_tells(scene, one_by_one, dice):
    """Asked before and after each step, so that anything kept too long would show; also why pods fit nowhere."""
    nodes, crowd = scene
    on = make.cluster(nodes, crowd)
    eligible = on.index(EligibleNodes)
    others, obstacles = eligible.among(nodes), Obstacles(on, nodes)
    there = {node.name: sorted((p for p in crowd if p.node == node.name and p.active), key=age_order) for node in nodes}
    with patch.object(eligibility, "_ONE_BY_ONE", one_by_one):  # nodes that are asked before the index of room is
        for gone in [None, *dice.sample(crowd, dice.randint(0, len(crowd)))]:
            if gone is not None:
                on.evicted(gone)
                there = {name: [each for each in residents if each is not gone] for name, residents in there.items()}
                if gone.node and dice.random() < 0.5:
                    home = dice.choice(nodes)
                    on.place(gone, home)
                    there[home.name].append(gone)
            for pod in [each for each in crowd if dice.random() < 0.8]:
                expected = {node.name: anew(pod, node, there[node.name]) for node in nodes}
                assert {node.name: eligible.why_not(pod, node) for node in nodes} == expected
                assert {node.name for node in nodes if eligible.fits(pod, node)} == taking(expected)
                whys = {name: why for name, why in expected.items() if name != pod.node}
                assert others.first_for(pod) in (taking(whys) or {""})
                assert others.any_for(pod) == bool(taking(whys))
                if all(whys.values()):
                    assert obstacles.of(pod) == {"nodes": len(whys), **fit.obstacles(whys.values())}


def age_order(pod):
    return pod.age_order


def taking(whys):
    return {name for name, why in whys.items() if not why}
