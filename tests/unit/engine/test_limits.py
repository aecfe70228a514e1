"""Limits on evictions: total, node, namespace."""

from collections.abc import Iterable

import pytest

from rebalancer.cluster.pod import Pod
from rebalancer.engine.limits import LimitCounter, Limits
from rebalancer.policy.moving import Share
from rebalancer.report.words import text
from tests.make import cluster, decide, evicted, node, pod, refused
from tests.unit.engine.stand_ins import Greedy, by

HERE, SAME_NODE, SAME_NAMESPACE, ELSEWHERE = (
    pod("here"),
    pod("same-node", namespace="other"),
    pod("same-namespace", node="n2"),
    pod("elsewhere", node="n2", namespace="other"),
)


def refusals(limits: Limits, spent: Iterable[Pod]) -> dict[str, str]:
    counter = LimitCounter(limits)
    for each in spent:
        counter.spend(each)
    asked = (HERE, SAME_NODE, SAME_NAMESPACE, ELSEWHERE)
    return {each.name: cause for each in asked if (cause := by(counter.refusal(each)))}


ALL = ("here", "same-node", "same-namespace", "elsewhere")


@pytest.mark.parametrize(
    ("limits", "spent", "expected"),
    [
        pytest.param(
            Limits(per_node=1, per_namespace=1, total=1),
            [HERE],
            dict.fromkeys(ALL, "TotalLimit"),
            id="total comes first",
        ),
        pytest.param(
            Limits(per_node=1, per_namespace=1),
            [HERE],
            {"here": "NodeLimit", "same-node": "NodeLimit", "same-namespace": "NamespaceLimit"},
            id="then the node, then the namespace",
        ),
    ],
)
def test_limits_refuse_what_would_exceed_them(limits: Limits, spent: list[Pod], expected: dict[str, str]) -> None:
    """In the descheduler's order."""
    assert refusals(limits, spent) == expected


def test_a_pod_without_a_node_has_no_node_limit() -> None:
    """It is from nowhere."""
    assert not LimitCounter(Limits(per_node=0)).refusal(pod("a", node=""))
    assert LimitCounter(Limits(per_node=0)).refusal(pod("a"))


def test_refusals_tell_the_numbers() -> None:
    """A person sees which limit and how much of it is used."""
    counter = LimitCounter(Limits(per_namespace=1))
    counter.spend(HERE)
    refusal = counter.refusal(HERE)

    assert refusal is not None
    assert text(refusal.cause) == "1 of 1 evictions in namespace default are used"


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


def test_node_and_namespace_limits_let_a_strategy_go_on() -> None:
    """With pods of other nodes and namespaces."""
    pods = [pod("a"), pod("b"), pod("c", node="n2"), pod("d", node="n2", namespace="other")]
    on = cluster([node("n1"), node("n2")], pods)

    ledger = decide(on, Greedy(), limits=Limits(per_node=1, per_namespace=1))

    assert evicted(ledger) == ["a", "d"]
    assert refused(ledger) == {"b": "NodeLimit", "c": "NamespaceLimit"}


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
