"""The clock by which a Lease is held."""

import shutil
import subprocess
import sys
import time

import pytest

from rebalancer.clock import boottime

#: As if the machine had slept for a day: a time namespace moves the clock that counts sleep, and no other.
SLEPT = ["unshare", "--fork", "--time", "--boottime", "86400"]
SHOWN = "import time; from rebalancer.clock import boottime; print(boottime() - time.monotonic())"


def can_have_slept() -> bool:
    """Whether this machine lets us have a clock of our own; that takes root and a kernel with time namespaces."""
    return shutil.which("unshare") is not None and not subprocess.call([*SLEPT, "true"], stderr=subprocess.DEVNULL)


def test_it_goes_on() -> None:
    """It never goes back."""
    assert boottime() <= boottime()


@pytest.mark.skipif(not can_have_slept(), reason="having slept takes root, unshare and time namespaces")
def test_it_counts_the_time_that_a_machine_sleeps() -> None:
    """A laptop that wakes up after a day does not hold yesterday's Lease."""
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()

    done = subprocess.run(
        [*SLEPT, sys.executable, "-c", SHOWN], capture_output=True, text=True, timeout=300, check=True
    )

    assert round(float(done.stdout) - slept) == 86400
