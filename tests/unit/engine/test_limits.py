"""Limits on evictions: total, node, namespace."""

import pytest

from rebalancer.engine.limits import LimitCounter, Limits
from rebalancer.policy.moving import Share
from rebalancer.report.words import text
from tests.make import cluster, decide, evicted, node, pod
from tests.unit.engine.stand_ins import Greedy


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

    assert refusal is not None
    assert (refusal.by, text(refusal.cause)) == (cause, words)


def test_a_pod_without_a_node_has_no_node_limit() -> None:
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


def test_any_limit_is_a_limit() -> None:
    """A live run without one warns."""
    assert not Limits()
    assert Limits(total=0)
    assert Limits(per_node=5)


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
