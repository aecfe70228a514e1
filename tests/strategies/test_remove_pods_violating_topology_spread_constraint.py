"""RemovePodsViolatingTopologySpreadConstraint: which pods leave crowded domains, and why (strategies.md 9)."""

import pytest
from pydantic import ValidationError

from rebalancer.cluster.pod import SpreadConstraint
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.engine.limits import Limits
from rebalancer.report.words import notice_text, text
from strategies.remove_pods_violating_topology_spread_constraint import (
    RemovePodsViolatingTopologySpreadConstraint as Strategy,
)
from tests.make import cluster, decide, evicted, node, pod, refused, selector

HARD = "DoNotSchedule"
SOFT = "ScheduleAnyway"
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


def after(ledger, sizes):
    """The number of pods by zone once those that were evicted are gone."""
    gone = [name[0] for name in evicted(ledger)]
    return {zone: size - gone.count(zone) for zone, size in sizes.items()}


def test_pods_leave_the_crowded_domain():
    """The youngest go, and the reason carries key, both sizes and maxSkew."""
    ledger = decide(cluster(zones("a", "b"), webs({"a": 7, "b": 2})), strategy())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("a7", "zone: a has 7, b 2, maxSkew 1"),
        ("a6", "zone: a has 7, b 2, maxSkew 1"),
    ]
    assert ledger.refusals == []
    assert ledger.warnings == []


@pytest.mark.parametrize(
    ("sizes", "skew", "left"),
    [
        ({"a": 2, "b": 1}, 1, {"a": 2, "b": 1}),
        ({"a": 3, "b": 1}, 1, {"a": 2, "b": 1}),
        ({"a": 4, "b": 0}, 1, {"a": 2, "b": 0}),
        ({"a": 2, "b": 6}, 2, {"a": 2, "b": 5}),
        ({"a": 0, "b": 1, "c": 3, "d": 5}, 1, {"a": 0, "b": 1, "c": 3, "d": 2}),
        ({"a": 8, "b": 7, "c": 0}, 1, {"a": 5, "b": 5, "c": 0}),
        ({"a": 5, "b": 5, "c": 5}, 1, {"a": 5, "b": 5, "c": 5}),
    ],
)
def test_how_many_go(sizes, skew, left):
    """From the largest to the smallest, until the skew is allowed, and no further than to the average."""
    on = cluster(zones(*sizes), webs(sizes, spread=over(skew=skew)))

    assert after(decide(on, strategy()), sizes) == left


def test_cheap_pods_go_first():
    """No priority before any and low before high, unlike the descheduler; of equal ones the youngest."""
    priorities = {"p1": 1000, "p2": 2, "p3": 1, "p4": None, "p5": None, "p6": 1}
    pods = [web(name, priority=each, age=100 - int(name[1])) for name, each in priorities.items()]
    on = cluster(zones("a", "b"), [*pods, *webs({"b": 1})])

    assert evicted(decide(on, strategy())) == ["p5", "p4"]
    assert evicted(decide(cluster(zones("a", "b"), pods), strategy())) == ["p5", "p4", "p6"]


@pytest.mark.parametrize("fields", [{"node_selector": {}}, {"node_affinity": True}], ids=["selector", "affinity"])
def test_pods_that_are_free_to_go_anywhere_go_first(fields):
    """A nodeSelector, be it empty, or any node affinity keeps a pod longer than a high priority does."""
    pods = [web("p1", priority=100), web("p2", **fields)]

    assert evicted(decide(cluster(zones("a", "b"), pods), strategy())) == ["p1"]


def test_a_pod_that_fits_nowhere_else_goes_last():
    """It is kept although it is the cheapest."""
    pods = [web("p1", cpu="3", priority=1), web("p2", cpu="1", priority=100)]
    on = cluster([*zones("a"), *zones("b", cpu="2")], pods)

    assert evicted(decide(on, strategy())) == ["p2"]


def test_a_pod_that_fits_nowhere_takes_up_a_place():
    """Two of four should move and one fits: one goes, the other is refused, and none goes in its place."""
    pods = [web("p1"), *(web(f"big{each}", cpu="3") for each in (1, 2, 3))]
    ledger = decide(cluster([*zones("a"), *zones("b", cpu="2")], pods), strategy())

    assert evicted(ledger) == ["p1"]
    assert refused(ledger) == {"big3": "NodeFit"}


@pytest.mark.parametrize(("balance_node_fit", "expected"), [(True, []), (False, ["a4", "a3"]), (None, [])])
def test_topology_balance_node_fit(balance_node_fit, expected):
    """Without it pods go even if the small domain has no room, so that an autoscaler makes some."""
    on = cluster([*zones("a"), *zones("b", cpu="50m")], webs({"a": 4}))

    assert evicted(decide(on, strategy(topologyBalanceNodeFit=balance_node_fit))) == expected


def test_a_destination_is_below_the_average():
    """Room in a domain at the average does not count, even if the evictor's nodeFit is content with it."""
    nodes = [*zones("a", cpu="50m"), *zones("b", "c")]
    on = cluster(nodes, webs({"a": 2, "b": 3, "c": 4}))

    assert evicted(decide(on, strategy(), evictor={"nodeFit": True})) == []
    on = cluster(nodes, webs({"a": 2, "b": 3, "c": 4}))
    assert evicted(decide(on, strategy(topologyBalanceNodeFit=False), evictor={"nodeFit": True})) == ["c4"]


def test_with_node_fit_some_other_node_must_take_the_pod():
    """Also where the small domain need not have room."""
    on = cluster([*zones("a"), *zones("b", cpu="50m")], webs({"a": 2}))
    ledger = decide(on, strategy(topologyBalanceNodeFit=False), evictor={"nodeFit": True})

    assert evicted(ledger) == []
    assert refused(ledger) == {"a2": "NodeFit"}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [(None, ["h2"]), ([], ["h2"]), ([HARD], ["h2"]), ([SOFT], ["s2"]), ([HARD, SOFT], ["h2", "s2"])],
)
def test_kinds_of_constraints(kinds, expected):
    """DoNotSchedule unless something else is listed."""
    soft = {"labels": {"app": "soft"}, "spread": over(when=SOFT, of=selector(app="soft"))}
    pods = [web("h1"), web("h2"), web("s1", **soft), web("s2", **soft)]

    assert evicted(decide(cluster(zones("a", "b"), pods), strategy(constraints=kinds))) == expected


def test_other_kinds_of_constraints_are_refused():
    """The error names the words there are."""
    with pytest.raises(ValidationError, match="'DoNotSchedule' or 'ScheduleAnyway'"):
        Strategy.Args.model_validate({"constraints": ["Sometimes"]})


def test_one_declaration_holds_for_all_pods_it_selects():
    """The pod that declares the constraint need not be among them, but must be of the namespace."""
    declarer = web("declarer", labels={}, spread=over())
    pods = [web("p1", spread=()), web("p2", spread=()), web("q1", namespace="other", spread=())]
    more = [web("q2", namespace="other", spread=())]

    assert evicted(decide(cluster(zones("a", "b"), [declarer, *pods, *more]), strategy())) == ["p2"]


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


@pytest.mark.parametrize(
    ("of", "expected"), [(None, []), (selector(), ["p4", "p3"])], ids=["no selector", "empty selector"]
)
def test_no_selector_is_not_the_empty_one(of, expected):
    """Without one the constraint applies to nothing."""
    pods = [web(f"p{each}", spread=over(of=of)) for each in (1, 2, 3, 4)]

    assert evicted(decide(cluster(zones("a", "b"), pods), strategy())) == expected


def test_match_label_keys_tell_replica_sets_apart():
    """Two pods of one hash are too many in a zone, one of each is not; keys a pod lacks are ignored."""
    spread = over(match_label_keys=("hash", "absent"))
    old, new = ({"app": "web", "hash": each} for each in "12")
    same = [web("p1", labels=old, spread=spread), web("p2", labels=old, spread=spread)]
    different = [web("p1", labels=old, spread=spread), web("p2", labels=new, spread=spread)]

    assert evicted(decide(cluster(zones("a", "b"), same), strategy())) == ["p2"]
    assert evicted(decide(cluster(zones("a", "b"), different), strategy())) == []


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


def test_nodes_without_the_label_and_their_pods_do_not_count():
    """They belong to no domain."""
    nodes = [*zones("a", "b"), node("n-none")]
    pods = [*webs({"a": 1, "b": 1}), *(web(f"x{each}", "none") for each in range(5))]

    assert evicted(decide(cluster(nodes, pods), strategy())) == []


def test_a_cordoned_domain_is_empty_but_no_destination():
    """It counts as a domain; pods go there only if fit is not asked for."""
    nodes = [*zones("a"), *zones("b", unschedulable=True)]

    assert evicted(decide(cluster(nodes, webs({"a": 4})), strategy())) == []
    free = strategy(topologyBalanceNodeFit=False)
    assert evicted(decide(cluster(nodes, webs({"a": 4})), free)) == ["a4", "a3"]


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
