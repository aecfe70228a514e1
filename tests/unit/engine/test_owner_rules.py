"""What an owner may lose in one cycle, and which of its pods rest."""

from datetime import timedelta

import pytest

from rebalancer.engine.owner_shares import OwnerShares
from rebalancer.policy.usage import REST
from tests.make import NOW, cluster, decide, node, pod
from tests.unit.engine.stand_ins import Scripted


def rests(*pods, rest=REST):
    """Whether each of these pods rests."""
    answers = []

    def script(on, evict):
        answers.extend(evict.resting(each, rest) for each in pods)

    assert decide(cluster([node("n1"), node("n2")], pods), Scripted(script)).runs[0].error is None
    assert {each.by for each in answers if each} <= {"Newcomer"}
    return [each is not None for each in answers]


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        pytest.param([600, 60, 60, 60, 60], [True] * 5, id="a PDB of a quarter lets one of five go"),
        pytest.param([600, 600, 60, 60, 60], [True] * 5, id="or two, since Kubernetes rounds up"),
        pytest.param([600, 600, 600, 60, 60], [False] * 3 + [True] * 2, id="no cycle has moved three"),
        pytest.param([600] * 4 + [585], [False] * 5, id="what came within fifteen seconds came with the first"),
        pytest.param([600] * 4 + [584], [False] * 4 + [True], id="a replacement takes longer than that"),
        pytest.param([600, 585, 585, 60, 60], [False] * 3 + [True] * 2, id="three of five came together"),
        pytest.param([600, 584, 584, 60, 60], [True] * 5, id="one came first, and a cycle may have moved it"),
    ],
)
def test_first_pods_rest_only_where_one_cycle_may_have_moved_them(ages, expected):
    """Others rest as long as they are new."""
    assert rests(*(pod(f"p{number}", age=age) for number, age in enumerate(ages))) == expected


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

    assert [rests(*pods, rest=timedelta(seconds=rest))[-1] for rest in (seconds + 1, seconds)] == [True, False]


def test_a_pod_without_an_owner_does_not_rest():
    """Nobody replaces it, so it has not replaced another one."""
    assert rests(pod("bare", owners=None, age=60)) == [False]


@pytest.mark.parametrize("going", [{"terminating": True}, {"phase": "Failed"}, {"phase": "Succeeded"}])
def test_pods_that_terminate_or_have_ended_are_not_an_owners_any_more(going):
    """Of seven that stay it may lose one; of eight it might lose two."""
    owned = [*(pod(f"p{number}") for number in range(7)), pod("going", **going)]
    shares = OwnerShares(owned)
    shares.spend(owned[0])

    assert shares.refusal(owned[1])
