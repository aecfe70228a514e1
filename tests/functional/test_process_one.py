"""Process 1 of a container: the kernel drops signals for which it has no handler."""

import shutil
import signal
import subprocess
import sys

import pytest

#: Stops before the command line is imported, and says that it has come so far.
HELD = """
import builtins, sys, time
real = builtins.__import__
def held(name, *rest, **more):
    if name == "rebalancer.cli.main" and rest[2:3] and "main" in (rest[2] or ()):
        print("importing", flush=True)
        time.sleep(60)
    return real(name, *rest, **more)
from rebalancer.__main__ import main
builtins.__import__ = held
main()
"""
AS_FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_be_first() -> bool:
    return bool(shutil.which("unshare")) and not subprocess.call([*AS_FIRST, "true"], stderr=subprocess.DEVNULL)


@pytest.mark.skipif(not can_be_first(), reason="being process 1 takes unshare and its namespaces")
def test_a_signal_during_the_imports_ends_process_one():
    """With the exit code of the signal, which a Job understands; without a handler it would be lost."""
    show = "import os; assert os.getpid() == 1\n" + HELD
    with subprocess.Popen([*AS_FIRST, sys.executable, "-c", show], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        first = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
        subprocess.run(["kill", f"-{signal.SIGTERM.value}", first.stdout.strip()], check=True)

        assert process.wait(60) == 128 + signal.SIGTERM
