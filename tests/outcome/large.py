"""A large cluster, where the scheduler looks at a part of the nodes: where steered replacements land, and what it
brings.

    .venv/bin/python -m tests.outcome.large [NODES [SEED]]

Pods are even by requests and uneven by load.
"""

import sys

from tests.outcome.result import Result
from tests.outcome.scenarios import SCENARIOS
from tests.outcome.simulation import play


def play_large(nodes: int, seed: int) -> Result:
    return play(SCENARIOS["open"], seed, 300.0, min_gain=1.5, cycles=1, nodes=nodes)


def main(nodes: int = 1000, seed: int = 1) -> None:
    played = play_large(nodes, seed)
    (steer,), (start, end) = played.steers, played.rows
    sys.stdout.write(
        f"{nodes} nodes: {played.evictions} moves in {steer.waves} waves, {played.seconds:.1f} s of CPU; "
        f"{steer.on_avoided} landed on avoided nodes; deviation of cpu {start.cpu_deviation:.1f} -> "
        f"{end.cpu_deviation:.1f}, memory {start.memory_deviation:.1f} -> {end.memory_deviation:.1f}; "
        f"over {start.over} -> {end.over}\n"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
