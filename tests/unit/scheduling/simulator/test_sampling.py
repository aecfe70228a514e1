"""Which nodes may win where the scheduler scores a part of them: the fast way against the definition."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.scheduling.simulator.sampling import window_winners
from rebalancer.scheduling.simulator.totals import Weighted, totals

SCORES = st.integers(0, 100)


@given(st.data(), st.integers(2, 12), st.integers(1, 3))
def test_a_node_may_win_unless_more_are_certainly_better_than_are_left_out(data, count: int, weight: int) -> None:
    """A relative score may be anything up to its highest, unless it is the same for all."""
    columns = st.one_of(st.lists(SCORES, min_size=count, max_size=count), SCORES.map(lambda score: [score] * count))
    fit, taints, spread = (data.draw(columns) for _ in range(3))
    weighted = {
        "NodeResourcesFit": Weighted(fit, weight),
        "TaintToleration": Weighted(taints, 3),
        "PodTopologySpread": Weighted(spread, 2),
    }
    enough = data.draw(st.integers(1, count - 1))

    varying = [factor * max(scores) for factor, scores in ((3, taints), (2, spread)) if len(set(scores)) > 1]
    better = [sum(weight * other > weight * mine + sum(varying) for other in fit) for mine in fit]
    assert window_winners(weighted, count, enough) == [
        place for place, number in enumerate(better) if number <= count - enough
    ]


@given(st.lists(st.tuples(st.lists(SCORES, min_size=3, max_size=3), st.integers(1, 4)), max_size=4))
def test_totals_are_the_weighted_sums_less_a_constant(columns: list[tuple[list[int], int]]) -> None:
    """Columns that are the same for all nodes are left out."""
    sums = [sum(weight * scores[place] for scores, weight in columns) for place in range(3)]

    found = totals([Weighted(*each) for each in columns], 3)

    assert [total - found[0] for total in found] == [total - sums[0] for total in sums]
