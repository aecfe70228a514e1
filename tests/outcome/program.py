"""A program that rebalances a cluster: a command line, run once a cycle."""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api import Object
from tests.outcome.policies import in_reference_words

# Seconds until a run that hangs is killed.
TIMEOUT = 300
OURS = f"{shlex.quote(sys.executable)} -m rebalancer run --yes --kubeconfig {{kubeconfig}} --policy {{policy}} -o json"


# What our program is made of.
PARTS = ("rebalancer", "strategies", "policies")


@dataclass(frozen=True)
class Ran:
    """What one run said: its exit code, its outputs, and how many seconds it took."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Program:
    """A program under measurement.

    Attributes:
        name: In the tables.
        command: A command line; {kubeconfig} and {policy} stand for files.
        plain: Whether it gets its policies in the descheduler's words.
        directory: Where it is run; None for the current one.
        configurable: Whether it takes our options.
    """

    name: str
    command: str
    plain: bool = False
    directory: Path | None = None
    configurable: bool = False

    def policy(self, policy: Object) -> Object:
        """Return a policy as this program gets it."""
        return in_reference_words(policy) if self.plain else policy

    def run(self, kubeconfig: Path, policy: Path, options: Sequence[str] = ()) -> Ran:
        """Run it to its end, with these options of ours if it takes them."""
        files = {"kubeconfig": shlex.quote(str(kubeconfig)), "policy": shlex.quote(str(policy))}
        started = time.monotonic()
        done = subprocess.run(
            [*shlex.split(self.command.format(**files)), *(options if self.configurable else ())],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - started)


def ours(root: Path, copy: Path, *, plain: bool, steer: bool = False) -> Program:
    """Return our program as it is now in a tree: it is copied, so that editing it meanwhile changes nothing.

    Args:
        root: of the tree.
        copy: where to.
        plain: whether it gets its policies in the descheduler's words.
        steer: whether it steers.
    """
    for part in PARTS:
        shutil.copytree(root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    return Program("rebalancer", f"{OURS} --steer" if steer else OURS, plain, copy, configurable=True)
