"""`make mutants`, ended while it works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "mutants" / "mutants.py"
TIMEOUT_SECONDS = 120.0


def test_sigterm_leaves_no_copy_of_the_tree_behind(tmp_path):
    command = [sys.executable, str(SCRIPT), "--number", "1", "--workers", "1", "--near", "eviction"]
    until = time.monotonic() + TIMEOUT_SECONDS
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not list(tmp_path.glob("mutants-*/original/rebalancer")) and time.monotonic() < until:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(TIMEOUT_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()

    assert list(tmp_path.glob("mutants-*")) == []
