"""RemovePodsViolatingTopologySpreadConstraint against a slow and obvious model, and what it never does."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.scheduling.spread import moves
from strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint as Strategy,
)
from tests import make
from tests.models.placement import World
from tests.models.topology_spread import Spreading, kept_longest_as_in_the_reference
from tests.properties import clusters

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

    return with_affinity(dice, spread=dice.some(2, constraint))


def with_affinity(dice, **fields):
    terms = dice.often(None, (dice.node_term(),))
    return dice.template(node_terms=terms, node_affinity=terms is not None, **fields)


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


@st.composite
def with_one_constraint(draw):
    """A cluster all of whose pods declare the same constraint, which looks at no policy of theirs."""
    key, max_skew = draw(st.sampled_from(TOPOLOGY_KEYS)), draw(st.integers(1, 3))
    constraint = SpreadConstraint(max_skew, key, HARD, make.selector(), (), None, "Ignore", "Ignore")
    return constraint, *draw(clusters.clusters(lambda dice: with_affinity(dice, spread=(constraint,))))


@given(with_one_constraint(), st.booleans())
def test_as_many_pods_go_as_in_the_reference_whatever_their_priorities(drawn, balance_node_fit):
    """The descheduler lets the highest priority go first and we the lowest; the number does not depend on it."""
    _, nodes, pods = drawn
    ledger = make.decide(make.cluster(nodes, pods), strategy([HARD], balance_node_fit))

    reference = Spreading(World(nodes, pods), [HARD], balance_node_fit, kept_longest_as_in_the_reference).evictions()
    assert len(ledger.evictions) == len(reference)


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


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12).map(sorted), st.integers(1, 5))
def test_domains_within_the_skew_are_left_alone(sizes, max_skew):
    """Moves are made if, and only if, the skew is above what is allowed."""
    assert bool(list(moves(sizes, max_skew))) == (sizes[-1] - sizes[0] > max_skew)
