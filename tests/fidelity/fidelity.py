"""Holds the simulated scheduler against the real one (`make fidelity`)."""

import argparse
import sys
import time
from random import Random

from tests.e2e.binaries import provide, provide_trimaran
from tests.fidelity import replacements
from tests.fidelity.comparison import Comparison
from tests.fidelity.load_aware import run_load_aware
from tests.fidelity.replacements import Landings
from tests.fidelity.trial import Plan, run

#: Of clusters, as many nodes; where pods are evicted, those of the first four.
SIZES = (10, 15, 25, 40, 60, 90, 150, 300)


def main() -> int:
    """Play random clusters; return 1 where something came out otherwise than foreseen."""
    options, binaries = _options(), provide()
    found = Landings() if options.evictions else Comparison()
    end = time.monotonic() + 60 * options.minutes
    for seed in range(options.seed, options.seed + options.clusters):
        started = time.monotonic()
        if options.evictions and started > end:
            break
        nodes = options.nodes or Random(seed).choice(SIZES[:4] if options.evictions else SIZES)
        if isinstance(found, Landings):
            replacements.run(binaries, seed, nodes, options.evictions, found, end)
        else:
            plan = Plan(seed, nodes, options.placements, options.configured, options.volumes)
            if options.trimaran:
                run_load_aware(binaries, provide_trimaran(), plan, found)
            else:
                run(binaries, plan, found)
        took = time.monotonic() - started
        sys.stderr.write(f"seed {seed}: {nodes} nodes, {took:.0f} s, {len(found.disagreements)} disagreements\n")
    sys.stdout.write("\n".join([found.table(), *found.disagreements[: options.show], ""]))
    return int(bool(found.disagreements))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first cluster")
    parser.add_argument("--clusters", type=int, default=50, help="how many clusters")
    parser.add_argument("--placements", type=int, default=100, help="pods placed on each")
    parser.add_argument("--nodes", type=int, default=0, help="nodes of each; 10 to 300 where it is not said")
    parser.add_argument("--configured", action="store_true", help="with profiles other than the default one")
    parser.add_argument("--volumes", action="store_true", help="pods with claims")
    parser.add_argument("--evictions", type=int, default=0, help="pods evicted on each, instead: controllers at work")
    parser.add_argument("--minutes", type=float, default=60, help="after which no more pods are evicted")
    parser.add_argument("--trimaran", action="store_true", help="pods of a second scheduler that knows load")
    parser.add_argument("--show", type=int, default=100, help="how many disagreements to print")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
