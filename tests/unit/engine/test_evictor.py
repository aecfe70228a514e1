"""DefaultEvictor: has the pod somewhere to go, and are enough of its kind left, or does it go by a rollout."""

from typing import Any

import pytest

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.patience import Recollection
from rebalancer.engine.restarts import restarting
from rebalancer.memory.document import Memory
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.policy.moving import Trust
from tests import make
from tests.make import cluster as make_cluster
from tests.make import decide, evicted, node, owner, pod, refused, selector, snapshot
from tests.unit.engine.stand_ins import Greedy, Polite, by, first_cause, told

FIT = {"nodeFit": True}


POOL = {**FIT, "nodeSelector": "pool=x"}


@pytest.mark.parametrize(
    ("other", "args", "cause"),
    [
        pytest.param(node("n2", unschedulable=True), {}, "", id="which matters with nodeFit only"),
        pytest.param(None, FIT, "NodeFit", id="there is no other node"),
        pytest.param(node("n2"), POOL, "NodeFit", id="the selector leaves no other node"),
        pytest.param(node("n2", labels={"pool": "x"}), POOL, "", id="the selector leaves one"),
    ],
)
def test_a_pod_needs_another_node_to_go_to(other: Any, args: dict[str, Any], cause: str) -> None:
    """Its own is not a place to go, and the evictor's own selector counts."""
    assert by(first_cause(pod("a"), args, nodes=[node("n1"), *([other] if other else [])])) == cause


def test_nodes_that_the_policy_does_not_select_are_destinations_too() -> None:
    """The policy's selector says whose pods are looked at; the evictor has one of its own."""
    nodes = [node("n1", labels={"pool": "x"}), node("n2", labels={"pool": "x"}, unschedulable=True), node("n3")]
    on = Cluster(snapshot(nodes, [candidate := pod("a")]), selector(pool="x"))

    assert not Evictor(on, DefaultEvictorArgs(node_fit=True)).causes(candidate)


def test_the_reasons_are_summed_up_by_their_number() -> None:
    nodes = [
        node("n1"),
        *(node(f"full{each}", cpu=str(each)) for each in (1, 2)),
        *(node(f"cordoned{each}", unschedulable=True) for each in range(3)),
        node("tainted", taints=["k:NoSchedule"]),
        node("taken", pods=0),
    ]

    assert told(first_cause(pod("a", cpu="3"), FIT, nodes=nodes)) == (
        "fits none of 7 other nodes: 3 x cordoned, 2 x insufficient cpu, 1 x no free pod slot, ..."
    )


@pytest.mark.parametrize(
    ("labels", "words"), [({"default": {}}, "do not match"), ({}, "are unknown"), (None, "are unknown")]
)
def test_a_pod_of_a_namespace_that_is_not_selected_has_nowhere_to_go(labels: Any, words: str) -> None:
    """A strategy that asks for that alone learns it too, as in the descheduler; what is unknown is told as such."""
    args = DefaultEvictorArgs.model_validate({"namespaceLabelSelector": {"matchLabels": {"team": "a"}}})
    on = make_cluster([node("n1"), node("n2")], [candidate := pod("a")], namespaces=labels)
    evictor = Evictor(on, args)

    refusal = evictor.without_destination(candidate)

    assert (by(refusal), words in told(refusal)) == ("NamespaceLabelSelector", True)
    assert evictor.causes(candidate) == (refusal.cause,)
    assert evictor.protection(candidate) is None


ANYWHERE = [pod("b", phase="Failed"), pod("c", node="", terminating=True)]


@pytest.mark.parametrize(
    ("candidate", "others", "cause"),
    [
        pytest.param(pod("a"), ANYWHERE, "", id="of any phase and anywhere"),
        pytest.param(pod("a"), [pod("b"), pod("c", owners="other")], "MinReplicas", id="others' pods do not count"),
        pytest.param(pod("a", owners=[owner("x"), owner("y")]), [], "", id="pods of several owners pass"),
    ],
)
def test_owners_keep_their_least_number_of_pods(candidate: Any, others: list[Any], cause: str) -> None:
    """MinReplicas of 3."""
    assert by(first_cause(candidate, {"minReplicas": 3}, others)) == cause


@pytest.mark.parametrize("minimum", [0, 1])
def test_a_minimum_of_one_means_nothing(minimum: int) -> None:
    """As in the descheduler; also for a strategy that asks about a pod once the owner's last one has gone."""
    on = make_cluster([node("n1"), node("n2")], [last := pod("a")])
    evictor = Evictor(on, DefaultEvictorArgs(min_replicas=minimum))

    assert not evictor.causes(last)
    on.remove(last)
    assert not evictor.too_few_replicas(last)


@pytest.mark.parametrize("strategy", [Greedy(), Polite()], ids=["a strategy that does not ask", "one that does"])
def test_min_replicas_counts_what_the_cycle_has_granted(strategy: Any) -> None:
    """Of three replicas two go, since before each of them at least two are there."""
    on = make_cluster([node("n1"), node("n2")], [pod(name) for name in "abc"])

    ledger = decide(on, strategy, evictor={"minReplicas": 2})

    assert evicted(ledger) == ["a", "b"]
    assert refused(ledger) == {"c": "MinReplicas"}


KEY = ("default", "Deployment/web")
OWNED = {"owners": [make.owner("web-5d9")], "labels": {"pod-template-hash": "5d9", "app": "web"}}


def scene(restart, note="", surging=(KEY,), **fields):
    """The only pod of a Deployment on one of two nodes, under a PDB that allows nothing."""
    pod = make.pod("web-5d9-a", node="n1", **{**OWNED, **fields})
    scheduler_inputs = SchedulerInputs(surging=frozenset(surging), notes={KEY: Notes(restart=note)} if note else {})
    parts = {"scheduler_inputs": scheduler_inputs, "budgets": (make.pdb("web", allowed=0),)}
    on = make.cluster((make.node("n1"), make.node("n2")), [pod], **parts)
    return on, pod, Trust(restart=restart)


@pytest.mark.parametrize("restart", [False, True, "annotated"])
@pytest.mark.parametrize("note", ["", "true", "True", "false", "maybe", "yes"])
def test_policy_and_annotation_both_have_a_say(restart, note):
    """Only `true` means yes; an annotation that is not clear keeps the Deployment as it is."""
    on, pod, settings = scene(restart, note)

    agreed = (restart and note in ("true", "True")) or (restart is True and not note)
    assert restarting(settings, on)(pod) == ("web" if agreed else "")
    assert restarting(None, on)(pod) == ""


@pytest.mark.parametrize(
    "fields",
    [
        *({"surging": ()}, {"ready": False}, {"terminating": True}, {"phase": "Failed"}, {"claims": ("disk",)}),
        *({"owners": [make.owner("web-5d9", kind="StatefulSet")]}, {"owners": [make.owner("api-5d9")]}),
    ],
)
def test_pods_that_a_rollout_would_not_move_without_a_gap_are_not_restarted(fields):
    on, pod, settings = scene(True, **fields)

    assert restarting(settings, on)(pod) == ""


@pytest.mark.parametrize("restart", [True, False])
def test_what_keeps_a_number_of_pods_running_does_not_hold_a_restart(restart):
    """minReplicas and the PDB; all else does."""
    on, _, settings = scene(restart)
    recollection = Recollection(settings, Memory(since=make.NOW))
    ledger = make.decide(on, Greedy(), evictor={"minReplicas": 2}, recollection=recollection)

    assert [each.verdict.restarted for each in ledger.evictions] == (["web"] if restart else [])
    assert set(make.refused(ledger).values()) == (set() if restart else {"MinReplicas"})
