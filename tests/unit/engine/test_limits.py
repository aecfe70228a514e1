"""Limits on evictions, what an owner may lose in one cycle, which of its pods rest, and trials of several pods."""

from datetime import timedelta

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs
from rebalancer.engine.limits import LimitCounter, Limits, OwnerShares
from rebalancer.engine.patience import Patience, Recollection
from rebalancer.memory.document import Memory
from rebalancer.policy.moving import Share, Trust
from rebalancer.policy.usage import REST
from tests.make import NOW, cluster, decide, evicted, node, owner, pdb, pod, refused, snapshot
from tests.unit.engine.stand_ins import Greedy, Scripted, by, told


@pytest.mark.parametrize(
    ("limits", "cause", "words"),
    [
        (Limits(1, 1, 1), "TotalLimit", "1 of 1 evictions of this cycle are used"),
        (Limits(1, 1), "NodeLimit", "1 of 1 evictions from n1 are used"),
        (Limits(None, 1), "NamespaceLimit", "1 of 1 evictions in namespace default are used"),
    ],
)
def test_the_total_comes_first_then_the_node_then_the_namespace(limits: Limits, cause: str, words: str) -> None:
    """As in the descheduler; a person sees which limit and how much of it is used."""
    counter = LimitCounter(limits)
    counter.spend(pod("a"))
    refusal = counter.refusal(pod("b"))

    assert (by(refusal), told(refusal)) == (cause, words)


def test_any_limit_is_a_limit_but_of_nodes_for_a_pod_without_one() -> None:
    """A live run without any warns."""
    assert (bool(Limits()), bool(Limits(total=0)), bool(Limits(per_node=5))) == (False, True, True)
    assert not LimitCounter(Limits(per_node=0)).refusal(pod("a", node=""))
    assert LimitCounter(Limits(per_node=0)).refusal(pod("a"))


def test_the_total_limit_ends_a_strategy_with_one_refusal() -> None:
    """It looks no further; the next strategy starts and runs into the same limit."""
    on = cluster([node("n1"), node("n2")], [pod(name) for name in "abcd"])

    ledger = decide(on, Greedy(), Greedy(), limits=Limits(total=2))

    assert evicted(ledger) == ["a", "b"]
    assert [f"{entry.pod.name} {entry.verdict.by}" for entry in ledger.refusals] == [
        "c TotalLimit",
        "a Gone",
        "b Gone",
        "c TotalLimit",
    ]
    assert [run.error for run in ledger.runs] == [None, None]


@pytest.mark.parametrize(
    ("field", "limit", "expected"),
    [
        ("total", "25%", 2),
        ("total", "1%", 1),
        ("total", "0%", 0),
        ("per_node", "50%", 5),
        ("per_namespace", "20%", 3),
    ],
)
def test_a_limit_may_be_a_part_of_the_pods(field, limit, expected):
    """Of all, of the node's, of the namespace's; rounded down, and one at least."""
    nodes = [node(name) for name in ("n1", "n2", "n3")]
    pods = [pod(f"p{n}", node=f"n{n % 2 + 1}", namespace=f"s{n % 3}", age=3600 - n) for n in range(10)]

    ledger = decide(cluster(nodes, pods), Greedy(), limits=Limits(**{field: Share(float(limit[:-1]))}))

    assert len(ledger.evictions) == (4 if field == "per_node" else expected)


ON = [node("n1"), node("n2")]
SPARED = {"b": "OwnerShare"}


def trial(pods, *, sparing=False, **cycle):
    """Ask twice which of these pods would be refused, then for all of them; return the answers and the ledger."""
    answers = []

    def script(on, evict):
        evict = evict.with_owner_limit() if sparing else evict
        answers.extend(evict.first_refusal(pods) for _ in range(2))
        assert [each for each in pods if on.contains(each)] == pods
        for each in pods:
            evict(each, "test")

    budgets = cycle.pop("budgets", ())
    ledger = decide(cluster(ON, pods, budgets=budgets), Scripted(script), **cycle)
    return answers, ledger


@pytest.mark.parametrize(
    ("fields", "cycle", "by"),
    [
        ({"owners": "web"}, {"limits": Limits(per_node=2)}, "NodeLimit"),
        ({"owners": "web"}, {"limits": Limits(per_namespace=2)}, "NamespaceLimit"),
        ({"owners": "web"}, {"limits": Limits(total=2)}, "TotalLimit"),
        ({"owners": "web"}, {"evictor": {"minReplicas": 2}}, "MinReplicas"),
        ({"labels": {"app": "web"}}, {"budgets": (pdb("web", 2),)}, "PDB"),
    ],
)
def test_a_trial_says_what_asking_would(fields, cycle, by):
    """The third of three is refused, each time one asks, and then in earnest."""
    pods = [pod(name, **fields) for name in "abc"]
    answers, ledger = trial(pods, **cycle)

    assert [(each.name, refusal.by) for each, refusal in answers] == [("c", by)] * 2
    assert refused(ledger) == {"c": by}


def test_a_trial_of_pods_that_may_go_has_no_answer():
    answers, ledger = trial([pod(name, owners=name) for name in "abc"], sparing=True, limits=Limits(total=3))

    assert answers == [None, None]
    assert len(ledger.evictions) == 3


def test_a_trial_looks_for_other_nodes_if_node_fit_is_on():
    pods = [pod("a", node_selector={"disk": "ssd"}), pod("b", owners=None)]
    answers, _ = trial(pods, evictor={"nodeFit": True})

    assert [(each.name, refusal.by) for each, refusal in answers] == [("a", "NodeFit")] * 2


@pytest.mark.parametrize(
    ("sparing", "budgets", "stays"),
    [(False, (), {}), (True, (), SPARED), (True, (pdb("web", 2),), {}), (True, (pdb("other", 2),), SPARED)],
)
def test_owners_are_spared_on_demand_only_and_where_no_pdb_takes_their_place(sparing, budgets, stays):
    """Of two pods one may go; the author of a PDB has said how many may be missing, if it selects the pods."""
    pods = [pod(name, labels={"app": "web"}) for name in "ab"]

    assert refused(trial(pods, sparing=sparing, budgets=budgets)[1]) == stays


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
