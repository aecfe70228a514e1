"""A start that no scheduler has chosen."""

from tests.outcome.load import make_load
from tests.outcome.scattered import scattered

NODES = [f"node-{number:02}" for number in range(30)]


def test_each_pod_has_a_node_and_owners_are_spread():
    """The same for the same seed; no two pods of an owner on one node while there are others."""
    load = make_load(1, 300)
    placed = scattered(load, 1, NODES)

    assert placed == scattered(load, 1, NODES) != scattered(load, 2, NODES)
    assert [len(placed[each.name]) for each in load] == [each.replicas for each in load]
    assert all(len(set(nodes)) == min(len(nodes), len(NODES)) for nodes in placed.values())
    assert len(scattered(load, 1, NODES[:3])[load[0].name]) == load[0].replicas
