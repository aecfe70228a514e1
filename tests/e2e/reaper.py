"""Outlives the test run, however that ends, and clears up after it.

Run as a process of its own. It is told on standard input which processes run ("+PID") and which have been
stopped ("-PID"); when the input ends, the test run is over, killed or not: what still runs is killed, each
with its session, and the directory named on the command line is removed.
"""

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    running: list[int] = []
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            running.append(pid)
        else:
            running.remove(pid)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
