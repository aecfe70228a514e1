"""Limits on evictions, and what the engine says of several pods at once."""

import pytest

from rebalancer.engine.limits import LimitCounter, Limits
from rebalancer.policy.moving import Share
from tests.make import cluster, decide, evicted, node, pdb, pod, refused
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
