"""What an owner may lose in one cycle, and which of its pods rest."""

import pytest

from rebalancer.args.usage import REST
from rebalancer.guards.owner_shares import most_lost
from tests.make import cluster, decide, node, pod
from tests.unit.engine.stand_ins import Scripted


@pytest.mark.parametrize(("number", "most"), [(1, 1), (4, 1), (5, 1), (7, 1), (8, 2), (9, 2), (12, 3)])
def test_a_quarter_is_rounded_down_and_at_least_one(number, most):
    """Two of five are more than one cycle moves."""
    assert most_lost(number) == most


@pytest.mark.parametrize(("together", "rests"), [(1, True), (2, True), (3, False)])
def test_first_pods_rest_only_where_one_cycle_may_have_moved_them(together, rests):
    """Of five pods a PDB of a quarter lets two go, since Kubernetes rounds up; the others came a minute ago."""
    pods = [pod(f"p{number}", age=600 if number < together else 60) for number in range(5)]
    answers = []

    def script(on, evict):
        answers.extend(evict.resting(each, REST) for each in pods)

    decide(cluster([node("n1"), node("n2")], pods), Scripted(script))

    assert [refusal is not None for refusal in answers] == [rests] * together + [True] * (5 - together)
    assert {refusal.by for refusal in answers if refusal} == {"Newcomer"}


@pytest.mark.parametrize(("seconds", "rests"), [(15, False), (16, True)])
def test_what_came_within_fifteen_seconds_of_the_first_came_with_it(seconds, rests):
    """A Deployment's first pods are not all made at once; a replacement takes longer than that."""
    pods = [*(pod(f"p{number}", age=600) for number in range(4)), pod("last", age=600 - seconds)]
    answers = []

    def script(on, evict):
        answers.extend(evict.resting(each, REST) for each in pods)

    decide(cluster([node("n1"), node("n2")], pods), Scripted(script))

    assert [refusal is not None for refusal in answers] == [False] * 4 + [rests]
