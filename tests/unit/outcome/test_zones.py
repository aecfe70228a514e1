"""Zones of the outcome, and what pods wish of them."""

from tests.outcome.load import make_load
from tests.outcome.zoned_scheduler import allowed, preference, spreading
from tests.outcome.zones import SOFT, STRICT, Wish, make_wishes, skews, worse

NODES = ["node-00", "node-01", "node-02", "node-03"]  # in zones a, b, c and a


def test_every_wish_occurs():
    wishes = make_wishes(make_load(1, 600), 1).values()

    assert {wish.spread for wish in wishes} == {"", STRICT, SOFT}
    assert any(wish.volume for wish in wishes)
    assert any(wish.prefers for wish in wishes)


def test_a_volume_ties_a_pod_to_its_zone():
    assert allowed(NODES, Wish(volume="a"), {}) == ["node-00", "node-03"]


def test_strict_spreading_closes_the_zones_that_are_ahead():
    """One pod in a: with another the skew would be 2."""
    assert allowed(NODES, Wish(spread=STRICT), {"node-00": 1}) == ["node-01", "node-02"]


def test_soft_spreading_scores_emptier_zones_higher():
    scores = spreading(NODES, Wish(spread=SOFT), {"node-00": 2}, zoned=True)

    assert scores["node-03"] < scores["node-01"] == scores["node-02"]


def test_a_preferred_zone_scores():
    assert [preference(name, Wish(prefers="b")) for name in NODES[:2]] == [0, 200]


def test_skews_are_compared_owner_by_owner():
    before = skews([("x", "node-00"), ("x", "node-01"), ("y", "node-00")])
    after = skews([("x", "node-00"), ("x", "node-03"), ("y", "node-02")])

    assert (before, after) == ({"x": 1, "y": 1}, {"x": 2, "y": 1})
    assert worse(before, after) == {"x"}
