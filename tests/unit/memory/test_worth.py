"""What moves gain and cost: no move that costs more than it gains, and both numbers in the report."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.engine.patience import LONG, hours_outside, price, ready_seconds
from rebalancer.eviction.steering import Steer
from rebalancer.memory.document import Reading
from tests import make, measured
from tests.unit.memory.memories import ago, memory, move, recollection

LOW, HIGH = {"cpu": 20.0}, {"cpu": 60.0}
HISTORY = st.lists(st.sampled_from((10.0, 40.0, 70.0, None)), max_size=12)


def readings(history, minutes=30):
    """What cycles that were so far apart measured of n1, the oldest first; None: they did not know it."""
    times = [ago(minutes=minutes * (len(history) - number)) for number in range(len(history))]
    seen = [{} if cpu is None else {"n1": {"cpu": cpu}} for cpu in history]
    return tuple(Reading(at, nodes) for at, nodes in zip(times, seen, strict=True))


@pytest.mark.parametrize(
    ("history", "hours"),
    [([], LONG), ([70], LONG), ([40], 0.5), ([40, 70, 70], 1.5), ([70, 40, 70], 1.0), ([70, None, 10], 1.0)],
)
def test_an_excess_is_expected_to_last_as_long_as_it_has_lasted(history, hours):
    """Since the last cycle that saw the node within its bounds, or did not know it; else for six hours."""
    assert hours_outside(readings(history), "n1", LOW, HIGH, make.NOW) == hours


@given(HISTORY, st.integers(1, 600))
def test_no_memory_makes_an_excess_last_longer_than_none(history, minutes):
    """Whatever was measured, the expectation is above nothing and at most what it is without memory."""
    assert 0 < hours_outside(readings(history, minutes), "n1", LOW, HIGH, make.NOW) <= LONG


SECONDS = st.none() | st.floats(0, 86_400)


@given(st.floats(0, 100), SECONDS, st.floats(0, 600), st.integers(1, 20), st.integers(1, 20))
def test_a_price_rises_with_the_wait_and_with_what_is_missing(ordinary, seconds, longer, missing, replicas):
    """And with the pod's importance; it never falls below half of an ordinary one's."""
    pods = [make.pod("p", priority=priority, qos=qos) for priority, qos in ((0, "Burstable"), (9, "Guaranteed"))]
    found = price(ordinary, pods[0], seconds, missing, replicas)

    assert price(ordinary, pods[0], (seconds or 0) + longer, missing, replicas) >= found
    assert price(ordinary, pods[0], seconds, missing + 1, replicas) >= found
    assert price(ordinary, pods[1], seconds, missing, replicas) >= found >= ordinary / 2


def test_the_wait_of_an_owner_is_the_median_of_what_was_seen():
    """A pod that was not Ready itself says nothing, nor does one whose replacement has not been seen Ready."""
    seen = [move(at=ago(hours=1), ready=ago(hours=1) + timedelta(seconds=each)) for each in (20, 90, 400)]
    others = [move(at=ago(hours=1)), move(at=ago(hours=1), ready=make.NOW, was_unready=True)]

    assert ready_seconds([*seen, *others]) == {("default", "ReplicaSet/web"): 90.0}


STEER = Steer(1.5, ("avoid", "avoid-more"))
PODS = [measured.pod(f"p{n}", owners=f"o{n % 2}") for n in range(8)]


def moved(history, usage=8.0, steer=None, **known):
    """What a cycle moves off n1, whose eight pods use so many points each; n2 is empty."""
    on = measured.cluster((measured.node("n1"), measured.node("n2")), PODS, {pod.name: usage for pod in PODS})
    known = recollection(memory=memory(*known.pop("moves", ()), readings=readings(history)), **known)
    strategy = measured.low(targets=60) if steer else measured.low_anywhere(targets=60)
    return make.decide(on, strategy, recollection=known, steer=steer)


@pytest.mark.parametrize("steer", [None, STEER])
@pytest.mark.parametrize("more", [{}, {"gpu/x": 10}])
def test_devices_that_a_node_lacks_do_not_make_its_excess_last(more, steer):
    """n1 is above the band since this cycle; only n3 has devices, and half of them are in use."""
    nodes = (measured.node("n1"), measured.node("n2"), measured.node("n3", extra={"gpu/x": "10"}))
    pods = [*PODS, measured.pod("on-n3", "n3")]
    usage = {pod.name: {**measured.points(8), "gpu/x": 0} for pod in PODS}
    usage["on-n3"] = {**measured.points(32), "gpu/x": 5}
    on = measured.cluster(nodes, pods, usage, rest={"n2": {**measured.points(0), "gpu/x": 0}})
    before = Reading(ago(minutes=30), {"n1": {"cpu": 40.0, "gpu/x": 0.0}})
    strategy = measured.low({"cpu": 20, **more}, {"cpu": 20, **more}, useDeviationThresholds=True)
    ledger = make.decide(on, strategy, recollection=recollection(memory=memory(readings=(before,))), steer=steer)

    assert (ledger.runs[0].error, make.evicted(ledger)) == (None, [])


@pytest.mark.parametrize(
    ("history", "fields", "goes"),
    [
        ([], {}, True),
        ([64], {}, True),
        ([40], {}, False),
        ([40, 64, 64], {}, True),
        ([40, 64, 64], {"trust": {"movePrice": 7}}, False),
        ([40], {"trust": {"movePrice": 0}}, True),
        ([40, 64, 64], {"moves": [move("o0", at=ago(hours=9), ready=ago(hours=8))] * 2}, True),
        ([40], {"steer": STEER}, False),
        ([40, 64, 64], {"steer": STEER}, True),
    ],
)
def test_a_node_that_is_little_over_waits_until_that_lasts(history, fields, goes):
    """n1 is 4 points over: 2 point hours since half an hour, 6 since one and a half; an ordinary move costs 6."""
    ledger = moved(history, **fields)

    assert bool(ledger.evictions) == goes
    if "steer" in fields:  # for others the next property says so
        assert all(each.because.details["gain"] >= each.because.details["price"] > 0 for each in ledger.evictions)
    assert goes or set(make.refused(ledger).values()) == {"NotWorth"}


@given(HISTORY, st.floats(6, 12), st.floats(0, 40))
def test_no_move_costs_more_than_it_gains(history, usage, ordinary):
    """Over every history; both numbers are with each move, unless nothing was measured or moves cost nothing."""
    ledger = moved(history, usage, trust={"movePrice": ordinary})

    for entry in ledger.evictions:
        assert not (history and ordinary) or 0 < entry.because.details["price"] <= entry.because.details["gain"]
    for entry in ledger.refusals:
        if entry.verdict.by == "NotWorth":
            assert entry.verdict.cause.details["gain"] < entry.verdict.cause.details["price"]


def test_without_memory_moves_cost_nothing():
    """A policy that remembers nothing decides and reports as ever."""
    on = measured.cluster((measured.node("n1"), measured.node("n2")), PODS, {pod.name: 8.0 for pod in PODS})

    (entry,) = make.decide(on, measured.low_anywhere(targets=60)).evictions

    assert not {"gain", "price"} & entry.because.details.keys()
