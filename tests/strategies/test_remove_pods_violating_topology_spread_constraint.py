"""RemovePodsViolatingTopologySpreadConstraint: which pods leave crowded domains, and why (strategies.md 9)."""

import pytest

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.engine.limits import Limits
from rebalancer.report.words import notice_text, text
from strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint as Strategy,
)
from tests.make import cluster, decide, evicted, node, pod, refused, selector

HARD = "DoNotSchedule"
SSD = (NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)),)


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


def test_a_pod_that_fits_nowhere_takes_up_a_place():
    """Two of four should move and one fits: one goes, the other is refused, and none goes in its place."""
    pods = [web("p1"), *(web(f"big{each}", cpu="3") for each in (1, 2, 3))]
    ledger = decide(cluster([*zones("a"), *zones("b", cpu="2")], pods), strategy())

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {"big3": "NodeFit"}


def test_a_destination_is_below_the_average():
    """Room in a domain at the average does not count, even if the evictor's nodeFit is content with it."""
    nodes = [*zones("a", cpu="50m"), *zones("b", "c")]
    on = cluster(nodes, webs({"a": 2, "b": 3, "c": 4}))

    assert evicted(decide(on, strategy(), evictor={"nodeFit": True})) == []
    on = cluster(nodes, webs({"a": 2, "b": 3, "c": 4}))
    assert evicted(decide(on, strategy(topologyBalanceNodeFit=False), evictor={"nodeFit": True})) == ["c4"]


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param({"owners": None}, id="without an owner"),
        pytest.param({"terminating": True}, id="terminating"),
        pytest.param({"labels": {"app": "web", "team": "y"}}, id="not selected by labels"),
        pytest.param({"phase": "Succeeded"}, id="finished"),
    ],
)
def test_what_does_not_count(hidden):
    """Only pods that may go are counted, so that the larger domain may be the one that seems empty."""
    labels = {"app": "web", "team": "x"}
    pods = [web("a1", labels=labels), web("a2", labels=labels), *webs({"b": 5}, **{"labels": labels, **hidden})]
    args = {"labelSelector": {"matchLabels": {"team": "x"}}}

    assert evicted(decide(cluster(zones("a", "b"), pods), strategy(**args))) == ["a2"]


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


def test_a_pod_that_two_constraints_want_to_move_goes_once():
    """The zone and the node are both too full for it."""
    both = (*over(), *over("kubernetes.io/hostname"))
    ledger = decide(cluster(zones("a", "b"), webs({"a": 2}, spread=both)), strategy())

    assert evicted(ledger) == ["a2"]
    assert ledger.refusals == []


@pytest.mark.parametrize(
    ("limits", "expected"),
    [(Limits(per_node=1), ["a4"]), (Limits(per_namespace=1), ["a4"]), (Limits(total=1), ["a4"]), (Limits(total=0), [])],
)
def test_limits_end_it_where_they_apply(limits, expected):
    """The pods that are left over are refused."""
    assert evicted(decide(cluster(zones("a", "b"), webs({"a": 4})), strategy(), limits=limits)) == expected


@pytest.mark.parametrize(("balance_node_fit", "expected"), [(True, []), (False, ["a4", "a3"]), (None, [])])
def test_topology_balance_node_fit(balance_node_fit, expected):
    """Without it pods go even if the small domain has no room, so that an autoscaler makes some."""
    on = cluster([*zones("a"), *zones("b", cpu="50m")], webs({"a": 4}))

    assert evicted(decide(on, strategy(topologyBalanceNodeFit=balance_node_fit))) == expected


@pytest.mark.parametrize("only", [{"node_terms": SSD, "node_affinity": True}, {"node_selector": {"disk": "ssd"}}])
@pytest.mark.parametrize(("policy", "expected"), [("Honor", []), ("Ignore", ["p1"])])
def test_node_affinity_policy(policy, expected, only):
    """Honor: nodes that the declaring pod cannot use make no domains."""
    declarer = web("p2", spread=over(node_affinity_policy=policy), **only)
    nodes = [node("n-a", labels={"zone": "a", "disk": "ssd"}), *zones("b")]

    assert evicted(decide(cluster(nodes, [web("p1", spread=()), declarer]), strategy())) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", []), ("Ignore", ["p2"])])
def test_node_taints_policy(policy, expected):
    """Honor: nodes whose taints the declaring pod does not tolerate make no domains."""
    pods = [web(f"p{each}", spread=over(node_taints_policy=policy)) for each in (1, 2)]
    nodes = [*zones("a"), *zones("b", taints=["k:NoSchedule"])]

    assert evicted(decide(cluster(nodes, pods), strategy(topologyBalanceNodeFit=False))) == expected


def test_pods_on_nodes_that_are_not_counted_make_a_domain_all_the_same():
    """Four pods on a tainted node, which the policy leaves out, are four too many (the descheduler's rule)."""
    spread = over(node_taints_policy="Honor")
    nodes = [*zones("a", taints=["k:NoSchedule"]), *zones("b")]

    assert evicted(decide(cluster(nodes, webs({"a": 4}, spread=spread)), strategy())) == ["a4", "a3"]
