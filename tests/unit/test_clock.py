"""The clock that counts the time in which a machine sleeps."""

import shutil
import subprocess
import sys
import time

import pytest

from rebalancer.clock import boottime
from rebalancer.kube.tries import Deadline, Halt, Halted, RetryPolicy
from tests.commands import run

#: As if the machine had slept for a day: a time namespace moves the clock that counts sleep, and no other.
SLEPT = ["unshare", "--fork", "--time", "--boottime", "86400"]
SHOWN = "import time; from rebalancer.clock import boottime; print(boottime() - time.monotonic())"


def can_have_slept() -> bool:
    return shutil.which("unshare") is not None and not subprocess.call([*SLEPT, "true"], stderr=subprocess.DEVNULL)


@pytest.fixture
def asleep(monkeypatch):
    """Let the machine have slept: `CLOCK_BOOTTIME` has gone on, `CLOCK_MONOTONIC` has stood still."""
    real = time.clock_gettime

    def fall_asleep(seconds):
        later = {time.CLOCK_BOOTTIME: seconds}
        monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + later.get(clock, 0.0))

    return fall_asleep


def test_a_deadline_passes_while_the_machine_sleeps(asleep):
    """No write begins after it; a consent and a Lease are measured by the same clock."""
    halt = Halt(60.0)
    halt.check()
    asleep(80.0)

    with pytest.raises(Halted, match="the deadline of 60 s after the snapshot has passed"):
        halt.check()
    assert {Deadline.after(1.0).clock, RetryPolicy().clock} == {boottime}


@pytest.mark.skipif(not can_have_slept(), reason="having slept takes root, unshare and time namespaces")
def test_it_counts_the_time_that_a_machine_sleeps() -> None:
    """A laptop that wakes up after a day does not hold yesterday's Lease."""
    slept = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()

    done = run(*SLEPT, sys.executable, "-c", SHOWN)

    assert round(float(done.stdout) - slept) == 86400
