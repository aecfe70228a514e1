"""The ground that the scenarios stand on: the control plane leaves nothing."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.e2e.harness import ControlPlane
from tests.e2e.waiting import wait_for


def test_nothing_is_left_of_a_run_that_is_killed(controlplane: ControlPlane) -> None:
    """A test run that is killed with SIGKILL leaves no process and no directory either."""
    script = (
        "from tests.e2e.harness import ControlPlane; from tests.e2e.binaries import provide; import os, sys\n"
        "plane = ControlPlane(provide()); plane.start()\n"
        "print(plane.directory, *plane.processes.pids(), flush=True); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL
    directory, *pids = killed.stdout.split()
    assert len(pids) == 6

    wait_for(lambda: not any(runs(pid) for pid in pids), "all processes gone")
    wait_for(lambda: not Path(directory).exists(), "its directory gone")


def runs(pid: str) -> bool:
    """Whether a process runs; a zombie that nobody has collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
