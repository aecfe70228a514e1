"""How full nodes are while a plan goes on."""

from datetime import timedelta

import pytest

from tests.measured import cluster, node, pod
from tests.planner import planner

WINDOW = timedelta(minutes=15)


@pytest.mark.parametrize(("window", "left"), [(timedelta(0), 20), (WINDOW, 50)])
def test_a_pod_that_goes_makes_room_only_where_the_figures_are_of_one_moment(window, left):
    """Over a window the peak of 50 points may have been made without the pod of 30."""
    a = pod("a", "n1")
    on = cluster([node("n1"), node("n2")], [a, pod("b", "n1")], {"a": 30, "b": 20}, measured={"window": window})
    fullness = planner(on, {"cpu": 20}, {"cpu": 50}).fullness

    with on.scope():
        on.remove(a)
        on.place(a, on.node("n2"))
        assert fullness.peak_fills(["n1", "n2"]).tolist() == [[left, 30]]
        assert fullness.fills(["n1", "n2"]).tolist() == [[20, 30]]
    assert fullness.peak_fills(["n1", "n2"]).tolist() == [[50, 0]]
