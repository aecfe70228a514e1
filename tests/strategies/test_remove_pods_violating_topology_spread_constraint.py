"""RemovePodsViolatingTopologySpreadConstraint: which pods leave crowded domains, and why (strategies.md 9)."""

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.report.words import notice_text, text
from strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint as Strategy,
)
from tests.make import cluster, decide, evicted, node, pod, selector

HARD = "DoNotSchedule"


def strategy(**args):
    return Strategy(Strategy.Args.model_validate(args))


def over(key="zone", skew=1, when=HARD, of=selector(app="web"), **fields):  # noqa: B008  immutable
    return (SpreadConstraint(skew, key, when, of, **fields),)


def web(name, zone="a", **fields):
    """A pod on the node of a zone, which spreads over zones; younger by its name."""
    fields = {"labels": {"app": "web"}, "spread": over(), **fields}
    return pod(name, node=f"n-{zone}", **fields)


def zones(*names, **fields):
    return [node(f"n-{name}", labels={"zone": name}, **fields) for name in names]


def webs(sizes, **fields):
    """So many pods by zone, named after it: a1, a2, ..."""
    return [web(f"{zone}{each}", zone, **fields) for zone, size in sizes.items() for each in range(1, size + 1)]


def test_pods_leave_the_crowded_domain():
    """The youngest go, and the reason carries key, both sizes and maxSkew."""
    ledger = decide(cluster(zones("a", "b"), webs({"a": 7, "b": 2})), strategy())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("a7", "zone: a has 7, b 2, maxSkew 1"),
        ("a6", "zone: a has 7, b 2, maxSkew 1"),
    ]
    assert ledger.refusals == []
    assert ledger.warnings == []


def test_cheap_pods_go_first():
    """No priority before any and low before high, unlike the descheduler; of equal ones the youngest."""
    priorities = {"p1": 1000, "p2": 2, "p3": 1, "p4": None, "p5": None, "p6": 1}
    pods = [web(name, priority=each, age=100 - int(name[1])) for name, each in priorities.items()]
    on = cluster(zones("a", "b"), [*pods, *webs({"b": 1})])

    assert evicted(decide(on, strategy())) == ["p5", "p4"]
    assert evicted(decide(cluster(zones("a", "b"), pods), strategy())) == ["p5", "p4", "p6"]


def test_min_domains_is_a_warning_only():
    """What is missing is named; nothing is evicted for a domain that does not exist."""
    pods = webs({"a": 2, "b": 2}, spread=over(min_domains=3))
    ledger = decide(cluster(zones("a", "b"), pods), strategy())

    assert evicted(ledger) == []
    (warning,) = map(notice_text, ledger.warnings)
    assert warning == (
        "test/RemovePodsViolatingTopologySpreadConstraint: namespace default: "
        "a spread over zone wants at least 3 domains, there are 2"
    )
    assert decide(cluster(zones("a", "b", "c"), pods), strategy()).warnings == []
