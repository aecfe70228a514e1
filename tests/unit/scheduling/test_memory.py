"""What is kept of the scheduler's answers: memory does not grow with pods times nodes, where all nodes are alike."""

import tracemalloc
from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling import simulation
from rebalancer.scheduling.certain_room import CertainRoom
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.worlds import Worlds
from tests import make

NODES, PODS = 80, 160
NAME = 8  # bytes of a reference


@pytest.fixture
def on() -> Iterator[Cluster]:
    nodes = [make.node(f"n{each:02}") for each in range(NODES)]
    template = make.pod("template")
    pods = [replace(template, name=f"p{each}", uid=f"u{each}", node=f"n{each % NODES:02}") for each in range(PODS)]
    with patch.object(simulation, "_MOST_NAMES", 1000):
        yield make.cluster(nodes, pods)


def certain(on: Cluster) -> Callable[[Pod], object]:
    return on.index(CertainRoom).doubt


def likely(on: Cluster) -> Callable[[Pod], object]:
    index = on.index(Simulation)
    return lambda pod: list(index.in_turn(pod))


def possible(on: Cluster) -> Callable[[Pod], object]:
    index = on.index(Worlds)
    return lambda pod: list(index.placements(pod))


@pytest.mark.parametrize(("asking", "times"), [(certain, 1.5), (likely, 1.5), (possible, 6)])
def test_answers_about_many_pods_take_little_memory(
    on: Cluster, asking: Callable[[Cluster], Callable[[Pod], object]], times: float
) -> None:
    """Of each pod less than `times` the names of all nodes: in possible histories answers differ by moment and tie."""
    ask, (first, *others) = asking(on), on.snapshot.pods
    ask(first)

    assert kept_by("*/simulator/*", lambda: [ask(pod) for pod in others]) < times * PODS * NODES * NAME


def test_pairs_of_owners_that_only_take_room_take_no_memory() -> None:
    """Each has labels of its own, so that a rule could tell them apart; an answer for a pair takes over 100 bytes."""
    nodes = [make.node(f"n{each}") for each in range(PODS)]
    pods = [make.pod(f"p{each}", f"n{each}", labels={"app": f"a{each}"}, owners=f"o{each}") for each in range(PODS)]
    on = make.cluster(nodes, pods)

    def let_go() -> None:
        for pod in pods:
            assert not on.index(CertainRoom).doubt(pod)
            on.evicted(pod)

    assert kept_by("*/certain_room.py", let_go) < PODS * PODS * 50


def kept_by(files: str, act: Callable[[], object]) -> int:
    """Return how many bytes were taken in these files, and are kept."""
    tracemalloc.start()
    try:
        act()
        now = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, files)])
    finally:
        tracemalloc.stop()
    return sum(each.size for each in now.statistics("filename"))
