"""A large cluster, where the scheduler looks at a part of the nodes: where steered replacements land, and what it
brings.

    .venv/bin/python -m tests.outcome.large [NODES [SEED]]

Pods are even by requests and uneven by load.
"""

import sys

from tests.outcome.scenarios import SCENARIOS
from tests.outcome.simulation import Played, play
from tests.outcome.state import RESOURCES, deviation, over


def play_large(nodes: int, seed: int) -> Played:
    """Play one steered cycle."""
    return play(SCENARIOS["open"], seed, 300.0, min_gain=1.5, cycles=1, nodes=nodes)


def main(nodes: int = 1000, seed: int = 1) -> None:
    """Play one steered cycle, and print what came of it."""
    played = play_large(nodes, seed)
    (steer,) = played.steers
    even = [f"{name} {deviation(played.start, name):.1f} -> {played.deviation(name):.1f}" for name in RESOURCES]
    sys.stdout.write(
        f"{nodes} nodes: {sum(played.evictions)} moves in {steer.waves} waves, {played.seconds:.1f} s of CPU; "
        f"{steer.on_avoided} landed on avoided nodes; deviation of {', '.join(even)}; "
        f"over {len(over(played.start, played.bounds))} -> {played.outside['over']}\n"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
