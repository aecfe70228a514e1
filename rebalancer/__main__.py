"""`python -m rebalancer`, and the command `rebalancer`."""

import gc

from rebalancer import cli

#: New objects between two garbage collections; Python's own 700 has a tenth of a run go into looking at a cluster that
#: is all in use.
_COLLECT_EVERY = 100_000


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_COLLECT_EVERY)
    cli.main()


if __name__ == "__main__":
    main()
