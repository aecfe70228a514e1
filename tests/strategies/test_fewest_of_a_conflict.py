"""RemovePodsViolatingInterPodAntiAffinity with `selection: fewest`: the fewest, then the cheapest pods go."""

import pytest

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.remove_pods_violating_inter_pod_anti_affinity import RemovePodsViolatingInterPodAntiAffinity as Strategy
from tests.make import cluster, decide, evicted, node, pdb, pod, refused, selector

HOST = "kubernetes.io/hostname"


def fewest(**args):
    return Strategy(Strategy.Args.model_validate({"selection": "fewest", **args}))


def against(app, key=HOST):
    return (PodAffinityTerm(key, selector(app=app)),)


def loner(name, app="web", key=HOST, **fields):
    return pod(name, labels={"app": app}, anti_affinity=against(app, key), **fields)


def shy(name, of="a", key=HOST, **fields):
    return pod(name, anti_affinity=against(of, key), **fields)


def loud(name="pod-a", app="a", **fields):
    return pod(name, labels={"app": app}, **fields)


def nodes(*pods, **fields):
    three = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "a"}), node("n3", labels={"zone": "b"})]
    return cluster(three, pods, **fields)


def test_of_one_pod_and_two_that_may_not_run_beside_it_the_one_goes():
    """As the descheduler's documentation has it; its code, and this strategy by default, let the two go."""
    ledger = decide(nodes(loud(), shy("pod-b"), shy("pod-c")), fewest())

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [
        ("pod-a", "in the way of default/pod-b on n1 and 1 more, by their anti-affinity")
    ]
    assert ledger.refusals == []


def test_a_conflict_of_two_protected_pods_stays_and_is_told():
    """The report says what protects the pod that declares the term; the other conflict is ended."""
    on = nodes(shy("shy", owners=None), loud(owners=None), shy("free"))
    ledger = decide(on, fewest())

    assert evicted(ledger) == ["free"]
    assert refused(ledger) == {"shy": "FailedBarePods"}


def test_where_a_budget_refuses_one_pod_the_others_go():
    """The PDB of the pod in the way allows nothing; that is known only when its eviction is asked for."""
    on = nodes(loud(), shy("pod-b"), shy("pod-c"), budgets=(pdb("a", 0),))
    ledger = decide(on, fewest())

    assert evicted(ledger) == ["pod-b", "pod-c"]
    assert refused(ledger) == {"pod-a": "PDB"}


@pytest.mark.parametrize(
    ("limits", "expected"), [(Limits(per_node=1), ["p1", "q1"]), (Limits(total=1), ["p1"]), (Limits(total=0), [])]
)
def test_limits_end_it_where_they_apply(limits, expected):
    """What a node may not lose any more stays; nothing is asked for twice."""
    on = nodes(
        *(loner(f"p{each}", age=100 - each) for each in (1, 2, 3)),
        *(loner(f"q{each}", node="n2", age=100 - each) for each in (1, 2, 3)),
    )
    ledger = decide(on, fewest(), limits=limits)

    assert evicted(ledger) == expected
    asked = [each.pod.name for each in (*ledger.evictions, *ledger.refusals)]
    assert len(asked) == len(set(asked))


def test_the_reason_names_a_pod_that_stays():
    """`c` dislikes two pods, and the one asked for last goes too, because of a protected pod."""
    on = nodes(
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

    assert len(evicted(decide(nodes(*ring), fewest()))) == 30
