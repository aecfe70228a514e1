"""What an owner may lose in one cycle, and which of its pods rest."""

from datetime import timedelta

import pytest

from rebalancer.engine.owner_shares import OwnerShares, most_lost
from rebalancer.policy.usage import REST
from tests.make import NOW, cluster, decide, node, pod
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


@pytest.mark.parametrize(("seconds", "rests"), [(15, False), (16, True)])
def test_the_first_pods_are_those_within_fifteen_seconds(seconds, rests):
    """If three of five came together, no cycle has moved them all; if one came first, a cycle may have moved it."""
    ages = [600, 600 - seconds, 600 - seconds, 60, 60]
    pods = [pod(f"p{number}", age=age) for number, age in enumerate(ages)]
    answers = []

    def script(on, evict):
        answers.extend(evict.resting(each, REST) for each in pods)

    decide(cluster([node("n1"), node("n2")], pods), Scripted(script))

    assert [refusal is not None for refusal in answers] == [rests] * 3 + [True] * 2


def test_an_owner_that_has_lost_its_share_keeps_the_rest():
    """Others' pods do not count against it, and pods without an owner have nobody to lose them."""
    owned = [*(pod(f"p{number}") for number in range(8)), pod("other", owners="other")]
    bare = [pod("bare", owners=None), pod("second", owners=None)]
    shares = OwnerShares([*owned, *bare])
    for each in (owned[0], owned[-1], bare[0]):
        shares.spend(each)

    assert [bool(shares.refusal(each)) for each in (owned[1], owned[-1], bare[1])] == [False, True, False]
    shares.spend(owned[1])
    assert shares.refusal(owned[2]).by == "OwnerShare"


@pytest.mark.parametrize(("started", "seconds"), [(None, 60), (NOW - timedelta(seconds=30), 30)])
def test_a_pod_rests_from_its_start_on_or_from_its_creation_until_it_starts(started, seconds):
    """As long as the kubelet has not seen it, nothing else is known."""
    pods = [*(pod(f"p{number}", age=600) for number in range(4)), pod("last", age=60, started=started)]
    answers = []

    def script(on, evict):
        answers.extend(evict.resting(pods[-1], timedelta(seconds=rest)) for rest in (seconds + 1, seconds))

    ledger = decide(cluster([node("n1"), node("n2")], pods), Scripted(script))

    assert ledger.runs[0].error is None
    assert [refusal is not None for refusal in answers] == [True, False]


def test_a_pod_without_an_owner_does_not_rest():
    """Nobody replaces it, so it has not replaced another one."""
    answers = []

    def script(on, evict):
        answers.append(evict.resting(on.pods()[0], REST))

    ledger = decide(cluster([node("n1"), node("n2")], [pod("bare", owners=None, age=60)]), Scripted(script))

    assert (ledger.runs[0].error, answers) == (None, [None])


@pytest.mark.parametrize("going", [{"terminating": True}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_pods_that_terminate_or_have_ended_are_not_an_owners_any_more(going):
    """Of seven that stay it may lose one; of eight it might lose two."""
    owned = [*(pod(f"p{number}") for number in range(7)), pod("going", **going)]
    shares = OwnerShares(owned)
    shares.spend(owned[0])

    assert shares.refusal(owned[1])
