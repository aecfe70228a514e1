"""RemovePodsViolatingInterPodAntiAffinity: who leaves whom, in which order, and why (strategies.md 6)."""

import pytest

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity as Strategy
from tests.make import cluster, decide, evicted, node, pdb, pod, refused, selector

HOST = "kubernetes.io/hostname"


def strategy(**args):
    return Strategy(Strategy.Args.model_validate(args))


def against(app, key=HOST, **fields):
    """One required term against pods labelled app=<app>."""
    return (PodAffinityTerm(key, None if app is None else selector(app=app), **fields),)


def loner(name, app="web", **fields):
    """A pod that wants no other of its kind around."""
    return pod(name, labels={"app": app}, anti_affinity=against(app), **fields)


def three_nodes(*pods, **fields):
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "a"}), node("n3", labels={"zone": "b"})]
    return cluster(nodes, pods, **fields)


def test_of_pods_that_dislike_each_other_one_stays():
    """The oldest go first, and each reason names a pod that is still there, with node and domain."""
    ledger = decide(three_nodes(loner("p1", age=30), loner("p2", age=20), loner("p3", age=10)), strategy())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("p1", "anti-affinity against default/p3 on n1 (topology kubernetes.io/hostname=n1)"),
        ("p2", "anti-affinity against default/p3 on n1 (topology kubernetes.io/hostname=n1)"),
    ]
    assert ledger.refusals == []


def test_of_one_pod_and_two_that_may_not_run_beside_it_the_two_go():
    """An example in the descheduler's documentation, which lets the one go; its code does what is shown here."""
    on = three_nodes(
        pod("pod-a", labels={"app": "a"}),
        pod("pod-b", anti_affinity=against("a")),
        pod("pod-c", anti_affinity=against("a")),
    )

    assert evicted(decide(on, strategy())) == ["pod-b", "pod-c"]


@pytest.mark.parametrize(("team", "expected"), [("x", ["shy"]), ("y", [])])
def test_namespaces_of_a_term(team, expected):
    """Unlike the descheduler, which looks at the list only.  The pod's own counts only where neither is given."""
    on = three_nodes(
        pod("shy", anti_affinity=against("loud", namespace_selector=selector(team=team))),
        pod("near", labels={"app": "loud"}),
        pod("far", namespace="other", labels={"app": "loud"}),
        namespaces={"default": {}, "other": {"team": "x"}},
    )

    assert evicted(decide(on, strategy())) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"match_label_keys": ("hash",)}, ["shy"], id="the same hash matters"),
        pytest.param({"mismatch_label_keys": ("hash",)}, ["shy2"], id="another hash matters"),
        pytest.param({"match_label_keys": ("absent",)}, ["shy", "shy2"], id="keys the pod lacks are ignored"),
    ],
)
def test_label_keys_narrow_the_selector(fields, expected):
    """Unlike the descheduler, which ignores them: `shy` has the neighbour's hash, `shy2` another."""
    on = three_nodes(
        pod("shy", labels={"hash": "1"}, anti_affinity=against("loud", **fields)),
        pod("shy2", labels={"hash": "2"}, anti_affinity=against("loud", **fields)),
        pod("loud", labels={"app": "loud", "hash": "1"}),
    )

    assert evicted(decide(on, strategy())) == expected


def fewest(**args):
    return Strategy(Strategy.Args.model_validate({"selection": "fewest", **args}))


def shy(name, of="a", key=HOST, **fields):
    return pod(name, anti_affinity=against(of, key), **fields)


def loud(name="pod-a", app="a", **fields):
    return pod(name, labels={"app": app}, **fields)


def test_of_one_pod_and_two_that_may_not_run_beside_it_the_one_goes():
    """As the descheduler's documentation has it; its code, and this strategy by default, let the two go."""
    ledger = decide(three_nodes(loud(), shy("pod-b"), shy("pod-c")), fewest())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("pod-a", "in the way of default/pod-b on n1 and 1 more, by their anti-affinity")
    ]
    assert ledger.refusals == []


def test_a_conflict_of_two_protected_pods_stays_and_is_told():
    """The report says what protects the pod that declares the term; the other conflict is ended."""
    on = three_nodes(shy("shy", owners=None), loud(owners=None), shy("free"))
    ledger = decide(on, fewest())

    assert evicted(ledger) == ["free"]
    assert refused(ledger) == {"shy": "FailedBarePods"}


def test_where_a_budget_refuses_one_pod_the_others_go():
    """The PDB of the pod in the way allows nothing; that is known only when its eviction is asked for."""
    on = three_nodes(loud(), shy("pod-b"), shy("pod-c"), budgets=(pdb("a", 0),))
    ledger = decide(on, fewest())

    assert evicted(ledger) == ["pod-b", "pod-c"]
    assert refused(ledger) == {"pod-a": "PDB"}


@pytest.mark.parametrize(
    ("limits", "expected"), [(Limits(per_node=1), ["p1", "q1"]), (Limits(total=1), ["p1"]), (Limits(total=0), [])]
)
def test_limits_end_it_where_they_apply(limits, expected):
    """What a node may not lose any more stays; nothing is asked for twice."""
    on = three_nodes(
        *(loner(f"p{each}", age=100 - each) for each in (1, 2, 3)),
        *(loner(f"q{each}", node="n2", age=100 - each) for each in (1, 2, 3)),
    )
    ledger = decide(on, fewest(), limits=limits)

    assert evicted(ledger) == expected
    asked = [each.pod.name for each in (*ledger.evictions, *ledger.refusals)]
    assert len(asked) == len(set(asked))


def test_the_reason_names_a_pod_that_stays():
    """`c` dislikes two pods, and the one asked for last goes too, because of a protected pod."""
    on = three_nodes(
        shy("c"),
        loud("stays", owners=None, age=9000),
        pod("goes", labels={"app": "a", "extra": "x"}, priority=1),
        pod("d", anti_affinity=(PodAffinityTerm(HOST, selector(extra="x")),), owners=None),
    )
    ledger = decide(on, fewest())

    assert {each.pod.name: text(each.because) for each in ledger.evictions} == {
        "c": "anti-affinity against default/stays on n1 (topology kubernetes.io/hostname=n1)",
        "goes": "in the way of default/d on n1, by their anti-affinity",
    }


def test_many_pods_that_hang_together_lose_no_more_than_by_the_rule_of_the_descheduler():
    """A ring of 60, every second of which shuns both its neighbours: 30 go, though it is too large to search."""
    ring = [
        pod(
            f"p{number}",
            labels={"app": f"{number}"},
            priority=number * 7 % 60,
            anti_affinity=against(f"{(number + 1) % 60}") + against(f"{number - 1}") if number % 2 else (),
        )
        for number in range(60)
    ]

    assert len(evicted(decide(three_nodes(*ring), fewest()))) == 30
