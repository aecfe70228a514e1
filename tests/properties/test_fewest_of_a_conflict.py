"""`selection: fewest` against brute force, and against the descheduler's rule, on random clusters."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity as Strategy,
)
from tests import make
from tests.models import inter_pod_anti_affinity as model
from tests.models.placement import World
from tests.properties.clusters import NAMESPACES, Dice, clusters

FEWEST = Strategy(Strategy.Args(selection="fewest"))


def template(dice: Dice) -> Pod:
    def term() -> PodAffinityTerm:
        key = dice.choice(("zone", "kubernetes.io/hostname", "disk"))
        return PodAffinityTerm(key, dice.selector(), namespaces=dice.some(2, lambda: dice.choice(NAMESPACES)))

    return dice.template(anti_affinity=dice.some(2, term))


CLUSTERS = clusters(template)


@st.composite
def small_clusters(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    """Few pods of many kinds on few nodes: 11 at most, so that all sets of them can be tried."""
    dice = Dice(draw(st.integers(0, 2**32)))
    nodes = [dice.node(f"n{number}") for number in range(draw(st.integers(2, 4)))]
    pods = [
        dice.replica(template(dice), f"p{number % 7}", NAMESPACES[number // 7], dice.choice(nodes))
        for number in range(draw(st.integers(2, 11)))
    ]
    return nodes, pods


@given(small_clusters(), st.booleans())
def test_the_pods_that_go_are_those_that_brute_force_finds(drawn, node_fit):
    """No fewer pods end all conflicts that can be ended, and no cheaper ones of the same number."""
    nodes, pods = drawn
    ledger = make.decide(make.cluster(nodes, pods), FEWEST, evictor={"nodeFit": node_fit})

    assert {str(each.pod) for each in ledger.evictions} == model.best(World(nodes, pods, node_fit=node_fit))


@given(CLUSTERS)
def test_never_more_pods_go_than_by_the_rule_of_the_descheduler(drawn):
    """Beside those whose going alone can help a protected pod: that rule does nothing for it."""
    nodes, pods = drawn
    ledger = make.decide(make.cluster(nodes, pods), FEWEST)

    world = World(nodes, pods)
    kept = {pod for pair in model.conflicts(world) for pod in pair if not model.may_go(world, pod)}
    forced = {str(pod) for pair in model.conflicts(world) if pair & kept for pod in pair - kept}
    by_rule = set(model.evictions(World(nodes, pods)))
    assert len(ledger.evictions) <= len(by_rule | forced)


@given(CLUSTERS)
def test_all_conflicts_are_ended_that_can_be(drawn):
    """Afterwards there is none of which one pod could have gone, and every pod that went had a part in one."""
    nodes, pods = drawn
    on = make.cluster(nodes, pods)
    before = World(nodes, pods)
    ledger = make.decide(on, FEWEST)

    left = model.conflicts(World(nodes, [pod for pod in pods if on.contains(pod)]))
    assert not [pair for pair in left if any(model.may_go(before, pod) for pod in pair)]
    in_conflict = {pod for pair in model.conflicts(before) for pod in pair}
    assert {each.pod for each in ledger.evictions} <= in_conflict
