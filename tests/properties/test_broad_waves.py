"""Waves to many nodes, on random clusters."""

from collections import Counter
from itertools import groupby
from math import floor, log2

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.balancing.steering.broad import BroadWaves
from rebalancer.engine.limits import Limits
from tests import make
from tests.attack.seeds import examples
from tests.measured import cluster, node, planner, pod

ZONE = "topology.kubernetes.io/zone"
OWNERS = ("red", "green", "blue")


@st.composite
def crowded(draw, zones):
    """Six hot nodes, and sixteen to twenty others; pods of three owners, of which two have a PDB."""
    names = [f"n{number:02}" for number in range(draw(st.integers(22, 26)))]
    labels = {name: {ZONE: draw(st.sampled_from(zones))} for name in names}
    pods, usage = [], {}
    for name in names:
        for number in range(draw(st.integers(2, 4)) if name < "n06" else 1):
            owner = draw(st.sampled_from(OWNERS))
            each = pod(f"{name}-{number}", name, owners=owner, labels={"app": owner})
            pods.append(each)
            usage[each.name] = draw(st.integers(10, 30) if name < "n06" else st.integers(0, 15))
    budgets = tuple(make.pdb(owner, draw(st.integers(0, 3))) for owner in OWNERS[:2])
    nodes = [node(name, labels=labels[name]) for name in names]
    return cluster(nodes, pods, usage, dict.fromkeys(names[:6], 20), {"budgets": budgets})


def drafted(parts):
    nodes = parts.cluster.nodes
    draft = BroadWaves(parts).next_wave(nodes, nodes)
    return draft.pods if draft else (), draft.destinations if draft else ()


def slow(parts):
    """The wave by asking about each pod with all that were chosen before it.

    To the scheduler all nodes but the avoided are alike, so about a pod alone only room and PDBs decide.
    """
    mean = parts.goal.mean[0]
    names = [each.name for each in parts.cluster.nodes]
    peaks = dict(sorted(zip(names, parts.fullness.peak_fills(names)[0], strict=True), key=lambda each: each[::-1]))
    low = [name for name, peak in peaks.items() if peak <= max(mean, (mean + 50) / 2)]
    middle = low[sum(peak <= mean for peak in peaks.values()) // 2]
    found = list(parts.offers.offers(parts.pool.on(parts.offers.givers()), [middle]))
    for _, alike in groupby(found, key=lambda each: floor(log2(found[0].gain / each.gain))):
        offers = list(parts.offers.in_order(alike))
        for number, first in enumerate(offers):
            receivers = [name for name in low if 2.25 * first.candidate.points["cpu"] <= 50 - peaks[name]]
            if chosen := slow_to(parts, receivers, 50 - max(map(peaks.get, receivers), default=50), offers[number:]):
                return chosen
    return ()


def slow_to(parts, receivers, room, offers):
    chosen, held = [], set()
    for offer in offers:
        pods, each = [other.candidate.pod for other in chosen], offer.candidate.pod
        if len(chosen) == max(1, len(receivers) // 2) or (chosen and offer.gain < chosen[0].gain / 2):
            break
        if 2.25 * offer.candidate.points["cpu"] > room or each.node in {other.node for other in pods}:
            continue
        if each.controller in held or parts.evict.first_refusal([each]):
            continue
        if parts.evict.first_refusal([*pods, each]):
            held.add(each.controller)
        else:
            chosen.append(offer)
    return tuple(offer.candidate.pod for offer in chosen)


@examples(15)
@given(crowded(("a",)), st.integers(1, 6))
def test_a_wave_has_the_pods_that_may_go_after_all_before_them(on, total):
    parts = planner(on, {"cpu": 20}, {"cpu": 50}, limits=Limits(total=total))
    expected = slow(parts)

    assert drafted(parts)[0] == expected


@examples(15)
@given(crowded(("a", "b", "c")), st.randoms(use_true_random=False))
def test_wherever_the_pods_of_a_wave_land_no_owner_is_spread_worse_over_zones(on, dice):
    zone = {each.name: each.labels[ZONE] for each in on.nodes}
    pods, receivers = drafted(planner(on, {"cpu": 20}, {"cpu": 50}))
    landed = {each.name: dice.choice(receivers) for each in pods}

    for owner in OWNERS:
        mine = [each for each in on.snapshot.pods if each.controller.name == owner]
        before = Counter(zone[each.node] for each in mine)
        after = Counter(zone[landed.get(each.name, each.node)] for each in mine)
        assert skew(after, zone) <= skew(before, zone)


def skew(counts, zone):
    return max(counts[each] for each in zone.values()) - min(counts[each] for each in zone.values())
