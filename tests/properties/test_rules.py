"""Strategies by the descheduler's rules decide as slow and obvious models do: the same pods in the same order."""

from typing import Any
from unittest.mock import patch

from hypothesis import event, given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PodAffinityTerm, SpreadConstraint
from rebalancer.engine.limits import Limits
from rebalancer.scheduling import anti_affinity
from rebalancer.scheduling.spread import moves
from strategies.high_node_utilization import HighNodeUtilization
from strategies.low_node_utilization import LowNodeUtilization
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity
from strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint as Strategy,
)
from tests import make
from tests.attack.seeds import examples
from tests.models import inter_pod_anti_affinity
from tests.models.node_utilization import High, Low
from tests.models.placement import World
from tests.models.topology_spread import Spreading
from tests.properties import clusters


def evictions(kind: Any, args: dict[str, Any], on: Any, *, node_fit: bool, limits: dict[str, int]) -> list[Any]:
    """The pods that go, in order, where a node may lose so many."""
    strategy, evictor = kind(kind.Args.model_validate(args)), {"nodeFit": node_fit}
    ledger = make.decide(on, strategy, evictor=evictor, limits=Limits(per_node=limits.get("node")))
    event(f"evictions: {min(len(ledger.evictions), 3)}")
    assert ledger.runs[0].error is None
    return [entry.pod for entry in ledger.evictions]


def percents(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, float]]:
    """Thresholds for these resources."""
    return st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from((0, 5, 10, 20, 30, 33.3, 45, 60, 80, 100))))


THRESHOLDS = st.sampled_from((("cpu",), ("pods",), ("cpu", "memory"), ("cpu", "memory", "pods"), ("cpu", clusters.GPU)))
LIMITS = st.fixed_dictionaries({}, optional={"node": st.integers(0, 3)})


def excluded(args: dict[str, Any]) -> frozenset[str]:
    return frozenset(args.get("evictableNamespaces", {}).get("exclude", ()))


@st.composite
def low_args(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(THRESHOLDS)
    one, other = draw(percents(names)), draw(percents(names))
    deviation = draw(st.booleans())
    low = one if deviation else {name: min(one[name], other[name]) for name in names}
    high = other if deviation else {name: max(one[name], other[name]) for name in names}
    optional = {
        "numberOfNodes": st.integers(0, 3),
        "evictableNamespaces": st.just({"exclude": ["bank"]}),
        "evictionLimits": st.integers(0, 3).map(lambda node: {"node": node}),
    }
    rest = draw(st.fixed_dictionaries({}, optional=optional))
    return {"thresholds": low, "targetThresholds": high, "useDeviationThresholds": deviation, **rest}


@examples(50)
@given(clusters.uneven_clusters(), low_args(), LIMITS, st.booleans())
def test_low_node_utilization(world, args, limits, node_fit):
    """None leaves a node that is not over, and none at all goes when no node is under."""
    nodes, pods = world
    source = args.get("evictionLimits", {})
    model = Low(
        World(nodes, list(pods), node_fit=node_fit),
        thresholds=args["thresholds"],
        targets=args["targetThresholds"],
        deviation=args["useDeviationThresholds"],
        number_of_nodes=args.get("numberOfNodes", 0),
        excluded=excluded(args),
        limits={**limits, **({"source": source["node"]} if source else {})},
    )
    under, over = model.classified()

    gone = evictions(LowNodeUtilization, args, make.cluster(nodes, pods), node_fit=node_fit, limits=limits)

    assert [str(pod) for pod in gone] == model.evictions()
    assert {pod.node for pod in gone} <= {node.name for node in over}
    assert under or not gone


HIGH_ARGS = st.fixed_dictionaries(
    {"thresholds": THRESHOLDS.flatmap(percents)},
    optional={
        "numberOfNodes": st.integers(0, 3),
        "evictableNamespaces": st.just({"exclude": ["bank"]}),
        "evictionModes": st.just(["OnlyThresholdingResources"]),
    },
)


@examples(100)
@given(clusters.uneven_clusters(), HIGH_ARGS, LIMITS, st.booleans())
def test_high_node_utilization(world, args, limits, node_fit):
    nodes, pods = world
    model = High(
        World(nodes, list(pods), node_fit=node_fit),
        thresholds=args["thresholds"],
        number_of_nodes=args.get("numberOfNodes", 0),
        excluded=excluded(args),
        limits=limits,
        only_thresholding="evictionModes" in args,
    )

    gone = evictions(HighNodeUtilization, args, make.cluster(nodes, pods), node_fit=node_fit, limits=limits)

    assert [str(pod) for pod in gone] == model.evictions()


def with_anti_affinity(dice):
    keys = ("app", "hash")
    return dice.template(
        anti_affinity=dice.some(
            2,
            lambda: PodAffinityTerm(
                topology_key=dice.choice(("zone", "kubernetes.io/hostname", "disk")),
                selector=dice.selector(),
                namespaces=dice.some(2, lambda: dice.choice(clusters.NAMESPACES)),
                namespace_selector=dice.choice((None, None, make.selector(), make.selector(team="x"))),
                match_label_keys=dice.choice(((), (), (dice.choice(keys),))),
                mismatch_label_keys=dice.choice(((), (), (dice.choice(keys),))),
            ),
        )
    )


NAMESPACES = st.sampled_from((None, {"shop": {"team": "x"}, "bank": {}}))


@examples(100)
@given(clusters.clusters(with_anti_affinity), st.booleans(), NAMESPACES, st.sampled_from((0, 2, 16)))
def test_inter_pod_anti_affinity(drawn, node_fit, namespaces, enough):
    """Whether all that terms select is sorted, or what is too much is looked at pod by pod."""
    on = make.cluster(*drawn, namespaces=namespaces)
    with patch.object(anti_affinity, "_SORTED", enough):
        gone = evictions(RemovePodsViolatingInterPodAntiAffinity, {}, on, node_fit=node_fit, limits={})

    expected = inter_pod_anti_affinity.evictions(World(*drawn, namespaces, node_fit))
    assert [str(pod) for pod in gone] == expected


HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
TOPOLOGY_KEYS = ("zone", "kubernetes.io/hostname", "disk")


def template(dice):
    def constraint():
        return SpreadConstraint(
            max_skew=dice.often(1, 2),
            topology_key=dice.choice(TOPOLOGY_KEYS),
            when_unsatisfiable=dice.often(HARD, SOFT),
            selector=dice.selector(),
            match_label_keys=dice.often((), ("hash",)),
            node_affinity_policy=dice.choice(("Honor", "Ignore")),
            node_taints_policy=dice.choice(("Honor", "Ignore")),
        )

    spread, terms = dice.some(2, constraint), dice.often(None, (dice.node_term(),))
    return dice.template(node_terms=terms, node_affinity=terms is not None, spread=spread)


KINDS = st.sampled_from(([], [HARD], [SOFT], [HARD, SOFT]))


def strategy(kinds, balance_node_fit):
    return Strategy(Strategy.Args.model_validate({"constraints": kinds, "topologyBalanceNodeFit": balance_node_fit}))


@given(clusters.clusters(template), KINDS, st.booleans(), st.booleans())
def test_the_same_pods_go_as_in_the_model(drawn, kinds, balance_node_fit, node_fit):
    """Whatever the cluster and its constraints, the program decides like the model."""
    nodes, pods = drawn
    on = make.cluster(nodes, pods)
    ledger = make.decide(on, strategy(kinds, balance_node_fit), evictor={"nodeFit": node_fit})

    expected = Spreading(World(nodes, pods, node_fit=node_fit), kinds or [HARD], balance_node_fit).evictions()
    assert sorted(str(each.pod) for each in ledger.evictions) == expected


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12).map(sorted), st.integers(1, 5))
def test_no_move_makes_the_skew_grow(sizes, max_skew):
    """Pods that land where they should leave no domain above the greatest before or below the smallest."""
    now = list(sizes)
    for source, target, number in moves(sizes, max_skew):
        assert number > 0
        spread_before = max(now) - min(now)
        now[source] -= number
        now[target] += number
        assert now[target] <= -(-sum(sizes) // len(sizes))
        assert now[source] >= sum(sizes) // len(sizes)
        assert max(now) - min(now) <= spread_before
