"""Which pods go by a rollout of their Deployment, and what holds them then."""

import pytest

from rebalancer.cluster.scheduler_inputs import Notes, SchedulerInputs
from rebalancer.engine.patience import Recollection
from rebalancer.engine.restarts import restarting
from rebalancer.memory.document import Memory
from rebalancer.policy.moving import Trust
from tests import make
from tests.unit.engine.stand_ins import Greedy

KEY = ("default", "Deployment/web")
OWNED = {"owners": [make.owner("web-5d9")], "labels": {"pod-template-hash": "5d9", "app": "web"}}


def scene(restart, note="", surging=(KEY,), **fields):
    """The only pod of a Deployment on one of two nodes, under a PDB that allows nothing."""
    pod = make.pod("web-5d9-a", node="n1", **{**OWNED, **fields})
    scheduler_inputs = SchedulerInputs(surging=frozenset(surging), notes={KEY: Notes(restart=note)} if note else {})
    parts = {"scheduler_inputs": scheduler_inputs, "budgets": (make.pdb("web", allowed=0),)}
    on = make.cluster((make.node("n1"), make.node("n2")), [pod], **parts)
    return on, pod, Trust(restart=restart)


@pytest.mark.parametrize(
    ("restart", "note", "expected"),
    [
        (False, "true", ""),
        (True, "", "web"),
        (True, "true", "web"),
        (True, "false", ""),
        (True, "maybe", ""),
        ("annotated", "", ""),
        ("annotated", "True", "web"),
        ("annotated", "yes", ""),
    ],
)
def test_policy_and_annotation_both_have_a_say(restart, note, expected):
    """Only `true` means yes; an annotation that is not clear keeps the Deployment as it is."""
    on, pod, settings = scene(restart, note)

    assert restarting(settings, on)(pod) == expected
    assert restarting(None, on)(pod) == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"surging": ()},
        {"ready": False},
        {"terminating": True},
        {"phase": "Failed"},
        {"claims": ("disk",)},
        {"owners": [make.owner("web-5d9", kind="StatefulSet")]},
        {"owners": [make.owner("api-5d9")]},
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
