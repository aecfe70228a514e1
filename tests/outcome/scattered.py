"""A start that no scheduler has chosen: pods on any node, as after a time in which nodes came and pods went."""

import random
from collections.abc import Iterable, Mapping, Sequence

from tests.outcome.load import Workload


def scattered(load: Iterable[Workload], seed: int, nodes: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return by owner the node of each pod, drawn at random; those of one owner on different nodes."""
    dice = random.Random(seed)
    return {each.name: _drawn(dice, each.replicas, nodes) for each in load}


def _drawn(dice: random.Random, count: int, nodes: Sequence[str]) -> list[str]:
    drawn: list[str] = []
    while len(drawn) < count:
        drawn += dice.sample(list(nodes), min(len(nodes), count - len(drawn)))
    return drawn
