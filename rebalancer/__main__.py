"""`python -m rebalancer`, and the command `rebalancer`."""

import gc
import signal
import sys
from types import FrameType

#: What a shell adds to the number of the signal that ended a program.
_BY_SIGNAL = 128

#: New objects between two garbage collections.  With Python's default of 700, a tenth of a run goes into collections
#: that free nothing, since the whole cluster is in use.
_COLLECT_EVERY = 1_000_000


def main() -> None:
    """Run the command line.

    In a container this is process 1, for which the kernel drops signals that have no handler.  So SIGTERM gets one
    before the imports, which take a fifth of a second; whatever has to be finished at a signal sets its own later.
    """
    signal.signal(signal.SIGTERM, _end)
    gc.set_threshold(_COLLECT_EVERY)
    from rebalancer.cli.main import main as cli  # noqa: PLC0415  after the handler

    cli()


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(_BY_SIGNAL + number)


if __name__ == "__main__":
    main()
