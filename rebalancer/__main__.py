"""`python -m rebalancer`, and the command `rebalancer`."""

import gc

from rebalancer.cli.main import main as cli

#: New objects between two garbage collections.  With Python's default of 700, a tenth of a run goes into collections
#: that free nothing, since the whole cluster is in use.
_COLLECT_EVERY = 100_000


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_COLLECT_EVERY)
    cli.main()


if __name__ == "__main__":
    main()
