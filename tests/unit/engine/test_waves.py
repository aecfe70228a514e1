"""Waves go through the gate like all that strategies ask for, and stand in the ledger with their placements."""

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.steering import HOT, ActualPlacement, Move, Steer, Wave
from tests import make
from tests.measured import KEYS, Landed
from tests.unit.engine.stand_ins import ScriptedBalance

BECAUSE = cause(Code.OVER_TARGET, node="n1", measured=[], points=0)


def one_wave(*, sparing=False):
    """A strategy that moves all pods of n1 to n2, in one wave."""

    def script(cluster, evict):
        moves = tuple(Move(pod, "n2", ("n2",), BECAUSE) for pod in cluster.pods())
        wave = Wave({"n1": HOT}, moves)
        evict.steer.begin(wave)
        ask = evict.with_owner_limit() if sparing else evict
        moved = [(move, ask(move.pod, move.because, move.destination)) for move in moves]
        evict.steer.settle(wave, [(move, verdict) for move, verdict in moved if verdict.leaving])
        evict.steer.end()

    return ScriptedBalance(script)


STUCK = Landed(node=None, replacement="new")
MISSING = Landed(node=None, is_missing=True)
UNSEEN = Landed(ready_seconds=None)


def run(steer, *, total=None, names="ab", sparing=False, **fields):
    pods = [make.pod(name, labels={"app": "web"}) for name in names]
    cluster = make.cluster([make.node("n1"), make.node("n2")], pods, **fields)
    return make.decide(cluster, *(one_wave(sparing=sparing) for _ in range(2)), steer=steer, limits=Limits(total=total))


def test_a_dry_run_foresees_every_landing():
    """A wave belongs to the strategy that made it."""
    first, second = run(Steer(1.5, KEYS)).runs

    (steered,) = first.waves
    assert [len(each.placements) for each in second.waves] == [0]
    assert steered.wave.avoid == {"n1": HOT}
    assert [(each.move.pod.name, each.node, each.foreseen) for each in steered.placements] == [
        ("a", "n2", True),
        ("b", "n2", True),
    ]


NOT_REPLACED = (
    "pods were not replaced (a quota, a webhook, or an owner that was scaled down?), so nothing more is evicted: "
)
PENDING = "replacements stay pending, so nothing more is evicted: "


@pytest.mark.parametrize(
    ("steer", "names", "stopped"),
    [
        (STUCK, "ab", PENDING + "default/new, default/new"),
        (STUCK, "abcde", PENDING + ", ".join(["default/new"] * 5)),
        (STUCK, "abcdefg", PENDING + ", ".join(["default/new"] * 5) + " and 2 more"),
        (
            MISSING,
            "ab",
            NOT_REPLACED + "default/a, default/b",
        ),
    ],
)
def test_replacements_that_stay_pending_or_do_not_come_end_the_cycle_and_are_named(steer, names, stopped):
    """What keeps them away would keep others away too."""
    ledger = run(steer, names=names)

    assert ledger.stopped == stopped
    assert [run.evicted for run in ledger.runs] == [len(names), 0]
    assert {placement.node for placement in ledger.runs[0].waves[0].placements} == {None}


@pytest.mark.parametrize("keeper", [{"budgets": (make.pdb("web", 1),)}, {"sparing": True}], ids=["PDB", "owner"])
def test_another_pod_is_spared_once_a_replacement_is_ready(keeper):
    """One for one, and not before: pods of the second wave wait for those of the first."""
    assert [each.evicted for each in run(Steer(1.5, KEYS), names="abc", **keeper).runs] == [1, 1]
    assert [each.evicted for each in run(UNSEEN, names="abc", **keeper).runs] == [1, 0]


def test_limits_stay_spent_when_a_replacement_is_ready():
    """They are about how many pods move, not about how many are missing."""
    ledger = run(Steer(1.5, KEYS), total=1)

    assert [each.evicted for each in ledger.runs] == [1, 0]


def test_a_landing_elsewhere_is_not_as_foreseen():
    move = Move(make.pod("a"), "n2", ("n2", "n3"), BECAUSE)

    assert [ActualPlacement(move, node).foreseen for node in ("n2", "n3", "n1", None)] == [True, True, False, False]
