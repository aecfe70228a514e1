"""Whom a cycle leaves alone, and what every history holds it to."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.scheduler_inputs import SchedulerInputs, Template
from rebalancer.engine.strategy import Balance
from rebalancer.memory.document import KEY, OwnerStop, Reading, encoded
from rebalancer.policy.moving import Trust
from rebalancer.run.memory import recalled, recollect, tripped
from tests import make, measured
from tests.unit.engine.stand_ins import Greedy
from tests.unit.memory.memories import ago, memory, move, recollection

N1, N2 = make.node("n1"), make.node("n2")


class Balanced(Greedy):
    """The same at the other extension point."""

    point = Balance.point


def stays(known, *, nodes=(N1, N2), strategy=None, **fields):
    """The first cause that keeps the one pod, by a balance strategy; None if it goes."""
    pod = make.pod("p", labels=fields.pop("labels", {}), **fields.pop("pod", {}))
    ledger = make.decide(make.cluster(nodes, [pod], **fields), strategy or Balanced(), recollection=known)
    return make.refused(ledger).get("p")


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([move(at=ago(minutes=29))], "BackOff"),
        ([move(at=ago(minutes=31))], None),
        ([move(at=ago(minutes=59)), move(at=ago(hours=5))], "BackOff"),
        ([move(at=ago(minutes=61)), move(at=ago(hours=5))], None),
        ([move(at=ago(minutes=59)), move(at=ago(hours=7))], None),
        ([move(at=ago(minutes=31), cycle=ago(minutes=32)), move(at=ago(minutes=32))], None),
        ([move(at=ago(minutes=5.9 * 60 - 10 * n)) for n in range(9)], "BackOff"),
        ([move(at=ago(minutes=6.1 * 60 + 10 * n)) for n in range(9)], None),
        ([move("other", at=ago(minutes=1))], None),
        # What was undone is not repeated for a day.
        ([move(at=ago(hours=23), source="n1", landed="n1", undone=True)], "Undone"),
        ([move(at=ago(hours=25), source="n1", landed="n1", undone=True)], None),
        ([move(at=ago(hours=23), source="n3", landed="n3", undone=True)], None),
        ([move(at=ago(hours=23), source="n3", landed="n1", replacement="uid-default-p")], "Undone"),
    ],
)
def test_an_owner_rests_longer_after_each_cycle_that_moved_it(moves, expected):
    """Half an hour, doubled by each further cycle within six hours, to six; two pods of one cycle count once."""
    assert stays(recollection(*sorted(moves, key=lambda each: each.at))) == expected


MINUTES = st.integers(0, 60 * 24)


def changing(kind="ReplicaSet", name="web"):
    spec = make.pod("t").spec
    return SchedulerInputs(templates={(kind, f"{kind}-{name}"): Template(labels={}, spec=spec, changing=True)})


def on_node(**fields):
    """The node of the pod, and another one."""
    return {"nodes": (make.node("n1", **fields), N2)}


def scaled(minutes):
    return SchedulerInputs(scaled={("default", "ReplicaSet/web"): ago(minutes=minutes)})


OF_JOB = {
    "scheduler_inputs": SchedulerInputs(finishing=frozenset({"Job-j"})),
    "pod": {"owners": [make.owner("j", kind="Job")]},
}
LEFT_ALONE = {
    "a rollout": ("Rollout", {"scheduler_inputs": changing()}),
    "scaled of late": ("Autoscaled", {"scheduler_inputs": scaled(9)}),
    "the last pods of a Job": ("FinishingJob", OF_JOB),
    "a node that has just come": ("YoungNode", on_node(created=ago(minutes=9))),
    "a cordoned node": ("LeavingNode", {"nodes": (make.node("n1", unschedulable=True), N2, make.node("n3"))}),
    "a node that is deleted": ("LeavingNode", on_node(terminating=True)),
    **{
        f"a node with {taint}": ("LeavingNode", on_node(taints=[taint]))
        for taint in (
            "ToBeDeletedByClusterAutoscaler=1:NoSchedule",
            "DeletionCandidateOfClusterAutoscaler=1:PreferNoSchedule",
            "karpenter.sh/disrupted:NoSchedule",
        )
    },
    "do-not-disrupt": ("DoNotDisrupt", {"pod": {"holding": "karpenter.sh/do-not-disrupt"}}),
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_what_others_change_is_left_alone(case):
    """By balance strategies; a pod that breaks a rule goes all the same, and so does every pod without memory."""
    code, given_ = LEFT_ALONE[case]

    assert stays(recollection(), **given_) == code
    assert stays(recollection(), strategy=Greedy(), **given_) is None
    assert stays(None, **given_) is None
    assert stays(recollection(), scheduler_inputs=scaled(minutes=11)) is None


def test_rules_may_heed_do_not_disrupt_too():
    assert stays(recollection(trust={"doNotDisrupt": "all"}), strategy=Greedy(), pod={"holding": "x"}) == "DoNotDisrupt"


def test_an_owner_that_is_stopped_loses_nothing_to_any_strategy():
    """A replacement of it failed."""
    stop = OwnerStop(namespace="default", owner="ReplicaSet/web", since=ago(minutes=9), until=ago(minutes=-51))
    known = recollection(memory=memory(stops=(stop,)))

    assert stays(known) == stays(known, strategy=Greedy()) == "OwnerStopped"


@pytest.mark.parametrize(("is_new", "since"), [(True, ago(days=1)), (False, ago(minutes=29))])
def test_without_memory_each_owner_loses_one_pod_to_balance_strategies(is_new, since):
    known = recollection(memory=memory(since=since), is_new=is_new)
    pods = [make.pod(f"{owner}-{n}", owners=owner) for owner in ("a", "b") for n in range(4)]

    went = make.evicted(make.decide(make.cluster([N1, N2], pods), Balanced(), recollection=known))

    assert went == ["a-0", "b-0"]
    assert len(make.evicted(make.decide(make.cluster([N1, N2], pods), Greedy(), recollection=known))) == 8


def reading(minutes, cpu):
    return Reading(ago(minutes=minutes), {"n1": {"cpu": cpu}})


@pytest.mark.parametrize(
    ("before", "goes"),
    [
        ((), False),
        ((90, 90), True),
        ((90, 20, 90), True),
        ((90, 90, 20, 20), False),
        ((90, 90, 90, 20, 20, 20), False),
        ((20, 90), False),
    ],
)
def test_a_load_counts_only_if_it_lasts(before, goes):
    """Three of four cycles with this one; each node by itself."""
    readings = tuple(reading(30 * (len(before) - n), cpu) for n, cpu in enumerate(before))
    known = recollection(memory=memory(readings=readings), trust={"lasting": {}})
    pods = [measured.pod(f"p{n}", owners=f"o{n}") for n in range(3)]
    on = measured.cluster((measured.node("n1"), measured.node("n2")), pods, {"p0": 30, "p1": 30, "p2": 30})

    ledger = make.decide(on, measured.low_anywhere(), recollection=known)

    assert bool(ledger.evictions) == goes
    assert goes or set(make.refused(ledger).values()) == {"NotLasting"}


SHARES = st.sampled_from((1, 2, "25%", "50%", "0%"))


@given(st.lists(st.sampled_from("abc"), max_size=20), SHARES, st.booleans())
def test_no_owner_is_above_its_share(owners, share, rules):
    """By number or by part, whichever strategy asks, and with replacements that are not Ready counted."""
    pods = [make.pod(f"p{n}", owners=owner) for n, owner in enumerate(owners)]
    late = make.pod("late", owners="a", ready=False, age=60)
    known = recollection(
        move("a", at=ago(minutes=2), cycle=ago(minutes=2), replacement=late.uid), trust={"maxPerOwner": share}
    )
    strategy = Greedy(2) if rules else Balanced()

    ledger = make.decide(make.cluster([N1, N2], [*pods, late]), strategy, recollection=known)

    lost = Counter(entry.pod.controller.name for entry in ledger.evictions)
    for owner in "abc":
        has = owners.count(owner) + (owner == "a")
        most = share if isinstance(share, int) else max(1, has * int(share[:-1]) // 100) if share != "0%" else 0
        assert lost[owner] <= max(0, most - (owner == "a"))


OWNERS = st.sampled_from("abc")
MOVES = st.lists(st.tuples(OWNERS, MINUTES, st.booleans(), st.sampled_from(("", "n1", "n2"))), max_size=8)


@given(
    MOVES, st.lists(OWNERS, max_size=8), st.lists(st.tuples(st.integers(0, 10_000), st.integers(32, 126)), max_size=3)
)
def test_whatever_the_memory_says_a_cycle_is_only_more_careful(moves, owners, damage):
    """True, forged or damaged: no pod goes that would not go if nothing were remembered; rules hardly care."""
    known = memory(*(move(o, at=ago(minutes=m), source=n, landed=n, undone=u) for o, m, u, n in moves))
    text = bytearray(encoded(known).encode())
    for place, byte in damage:
        text[place % len(text)] = byte
    pods = [make.pod(f"p{n}", owners=owner) for n, owner in enumerate(owners)]
    on = make.cluster([N1, N2], pods)
    recalled_ = recalled({KEY: text.decode()}, "of a test", make.NOW)

    careful = make.decide(on, Balanced(), recollection=recollect(recalled_, Trust(), on.snapshot))
    free = make.decide(make.cluster([N1, N2], pods), Balanced(), recollection=recollection())
    rules = make.decide(make.cluster([N1, N2], pods), Greedy(), recollection=recollect(recalled_, Trust(), on.snapshot))

    assert set(make.evicted(careful)) <= set(make.evicted(free))
    assert make.evicted(rules) == make.evicted(free)
    assert not recalled_.problem or not careful.evictions


@pytest.mark.parametrize("since", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-15T12:11:00Z"])
def test_a_breaker_of_a_time_that_cannot_be_lets_one_move_be_tried(since):
    """Whoever may annotate the Lease may write what they like."""
    text = json.dumps({"since": since, "until": since})

    assert tripped(text, make.NOW).until <= make.NOW
