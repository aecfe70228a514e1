"""Which nodes may win while others are somewhere, as worked sums."""

import pytest

from rebalancer.scheduling.contest import Contest, Level

FIT, PACKING = "NodeResourcesFit", "TargetLoadPacking"


def levels(*scores: dict[str, int | None]) -> list[Level]:
    """With so many of the others on a node: 0, 1 and so on; None where no room is left."""
    return [
        Level(number, {name: {FIT: points} for name, points in each.items() if points is not None}, {})
        for number, each in enumerate(scores)
    ]


@pytest.mark.parametrize(("others", "found"), [(1, {"n1", "n2"}), (2, {"n1", "n2", "n3"})])
def test_all_better_nodes_have_to_be_brought_down_together(others: int, found: set[str]) -> None:
    """n1 and n2 are better than n3 until one of the others is on each; one cannot be on both."""
    alone, filled = {"n1": 50, "n2": 50, "n3": 49, "n4": 40}, {"n1": 45, "n2": 45, "n3": 49, "n4": 40}

    assert Contest(levels(alone, filled), {"n1", "n2"}, others, {}).winners() == found


def test_a_node_that_cannot_be_brought_down_far_enough_keeps_the_rest_out() -> None:
    """However many there are: of those that may be on n1, all leave it above n2."""
    assert Contest(levels({"n1": 50, "n2": 40}, {"n1": 41, "n2": 40}), {"n1"}, 9, {}).winners() == {"n1"}


@pytest.mark.parametrize(("others", "found"), [(1, {"n1"}), (2, {"n1", "n2"})])
def test_a_node_that_fills_up_is_out_of_the_way(others: int, found: set[str]) -> None:
    """It takes two to fill n1."""
    each = levels({"n1": 50, "n2": 10}, {"n1": 40, "n2": 10}, {"n1": None, "n2": 10})

    assert Contest(each, {"n1"}, others, {}).winners() == found


@pytest.mark.parametrize(("peaks", "found"), [({}, {"n2"}), ({PACKING: 100}, {"n1", "n2"})])
def test_a_score_that_rises_and_falls_may_be_highest_in_between(peaks: dict[str, int], found: set[str]) -> None:
    """n1 is below the target with none of the others and beyond it with one of two; n2 is at 90."""
    each = [Level(number, {"n1": {PACKING: points}, "n2": {PACKING: 90}}, {}) for number, points in enumerate((60, 30))]

    assert Contest(each, {"n1"}, 1, peaks).winners() == found
