"""RemovePodsViolatingNodeAffinity: which pods leave which nodes, and why (strategies.md 7)."""

import pytest

from rebalancer.cluster.pod import PreferredTerm
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.report.words import notice_text, text
from strategies.remove_pods_violating_node_affinity import PREFERRED, REQUIRED
from strategies.remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity as Strategy
from tests.make import cluster, decide, evicted, node, pod


def strategy(*types, **args):
    return Strategy(Strategy.Args.model_validate({"nodeAffinityType": types or [REQUIRED], **args}))


def term(key="disk", operator="In", *values):
    return NodeSelectorTerm((Requirement(key, operator, values or (("ssd",) if operator == "In" else ())),))


def requiring(name, *terms, **fields):
    """A pod that must run on a node with disk=ssd, unless terms are given."""
    return pod(name, node_terms=terms or (term(),), node_affinity=True, **fields)


def preferring(name, weight=50, **fields):
    return pod(name, preferred=(PreferredTerm(weight, term()),), node_affinity=True, **fields)


def nodes(**better):
    """n1 has no labels, n2 disk=ssd and these fields."""
    return [node("n1"), node("n2", labels={"disk": "ssd"}, **better)]


@pytest.mark.parametrize(
    ("made", "kind", "because"),
    [
        (requiring, REQUIRED, "disk=ssd required, n1 does not match, n2 would take it"),
        (preferring, PREFERRED, "preferred affinity weighs 0 on n1, 50 on n2"),
    ],
)
def test_a_pod_leaves_a_node_that_its_affinity_does_not_match_or_likes_less(made, kind, because):
    """The reason says what is missing and which node would take it, or both weights."""
    ledger = decide(cluster(nodes(), [made("p1"), made("p2", node="n2")]), strategy(kind))

    assert [(each.pod.name, text(each.because)) for each in ledger.evictions] == [("p1", because)]


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        pytest.param((term("disk", "In", "ssd", "nvme"),), "disk in (ssd,nvme)", id="In"),
        pytest.param((term("slow", "NotIn", "yes"), term()), "slow!=yes or disk=ssd", id="NotIn, alternatives"),
        pytest.param((term("slow", "NotIn", "yes", "very"),), "slow notin (yes,very)", id="NotIn several"),
        pytest.param((term("disk", "Exists"),), "disk", id="Exists"),
        pytest.param((term("slow", "DoesNotExist"),), "!slow", id="DoesNotExist"),
        pytest.param((term("cores", "Gt", "8"),), "cores>8", id="Gt"),
        pytest.param(
            (term("cores", "Lt", "99"), NodeSelectorTerm()), "cores<99 or nothing there is", id="Lt, empty term"
        ),
        pytest.param(
            (NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n2",)),)),), "metadata.name=n2", id="a field"
        ),
    ],
)
def test_what_is_missing_is_said_as_kubectl_says_it(terms, words):
    """Every operator, and alternatives joined by `or`."""
    here, there = node("n1", labels={"slow": "yes"}), node("n2", labels={"disk": "ssd", "cores": "16"})
    ledger = decide(cluster([here, there], [requiring("p1", *terms)]), strategy())

    assert [text(each.because) for each in ledger.evictions] == [
        f"{words} required, n1 does not match, n2 would take it"
    ]


@pytest.mark.parametrize(("cordoned", "went"), [(False, ["p1"]), (True, [])])
def test_the_node_that_is_liked_more_may_be_closed_as_long_as_some_node_takes_the_pod(cordoned, went):
    """Its own is enough."""
    own = node("n1", unschedulable=cordoned)
    liked = node("n2", labels={"disk": "ssd"}, unschedulable=True)

    assert evicted(decide(cluster([own, liked], [preferring("p1")]), strategy(PREFERRED))) == went


def test_an_unknown_type_is_skipped_with_a_warning():
    ledger = decide(cluster(nodes(), [requiring("p1")]), strategy("requiredDuringExecution", REQUIRED))

    assert evicted(ledger) == ["p1"]
    (warning,) = map(notice_text, ledger.warnings)
    assert warning == (
        "test/RemovePodsViolatingNodeAffinity: nodeAffinityType 'requiredDuringExecution' is unknown and skipped; "
        f"there are {REQUIRED} and {PREFERRED}"
    )
