"""What an owner may lose in one cycle, and which of its pods rest."""

from datetime import timedelta

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs
from rebalancer.engine.limits import OwnerShares
from rebalancer.engine.patience import Patience, Recollection
from rebalancer.memory.document import Memory
from rebalancer.policy.moving import Trust
from rebalancer.policy.usage import REST
from tests.make import NOW, cluster, decide, node, owner, pod, snapshot
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
    assert rests(*(pod(f"p{number}", age=age) for number, age in enumerate(ages))) == expected


@pytest.mark.parametrize(("started", "seconds"), [(None, 60), (NOW - timedelta(seconds=30), 30)])
def test_a_pod_rests_from_its_start_on_or_from_its_creation_until_it_starts(started, seconds):
    """As long as the kubelet has not seen it, nothing else is known."""
    pods = [*(pod(f"p{number}", age=600) for number in range(4)), pod("last", age=60, started=started)]

    assert [rests(*pods, rest=timedelta(seconds=rest))[-1] for rest in (seconds + 1, seconds)] == [True, False]


def test_a_pod_without_an_owner_does_not_rest():
    """Nobody replaces it, so it has not replaced another one."""
    assert rests(pod("bare", owners=None, age=60)) == [False]


@pytest.mark.parametrize(("had", "may_lose"), [(1, 1), (3, 1), (7, 1), (8, 2), (11, 2), (12, 3)])
def test_a_quarter_and_at_least_one(had, may_lose):
    """Rounded down; pods that are terminating or have ended, of other owners and other namespaces are none of its."""
    pods = [pod(f"p{number}") for number in range(had)]
    others = [pod("t", terminating=True), pod("f", phase="Failed"), pod("o", owners="o"), pod("n", namespace="n")]
    shares = OwnerShares([*pods, *others * 4])
    lost = 0
    while shares.refusal(pods[0]) is None:
        shares.spend(pods[0])
        lost += 1

    assert lost == may_lose
    assert shares.refusal(pod("other", owners="o")) is None


def test_the_controller_is_the_owner_that_counts():
    shares = OwnerShares([])
    shares.spend(pod("a", owners=[owner("one")]))

    assert shares.refusal(pod("b", owners=[owner("one")])).by == "OwnerShare"
    assert shares.refusal(pod("c", owners=None)) is None


def test_what_an_annotation_says_is_worked_out_once():
    """To find when a window opens next may take long, and a namespace may have thousands of pods."""
    notes = {("default", ""): Notes(window="0 0 * 2 1#5; 1m")}
    seen = snapshot([node("n1")], [pod("a"), pod("b")], scheduler_inputs=SchedulerInputs(notes=notes))
    patience = Patience(Recollection(Trust(), Memory(since=NOW)), Cluster(seen))

    first, second = (patience.refusal(each, balance=False) for each in seen.pods)

    assert first is not None
    assert first is second
