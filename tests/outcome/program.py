"""A program that rebalances a cluster: a command line, run once a cycle."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from tests.commands import run
from tests.e2e.api import Object
from tests.outcome.policies import in_reference_words

# Seconds until a run that hangs is killed.
TIMEOUT = 300
OURS = f"{shlex.quote(sys.executable)} -m rebalancer run --yes --kubeconfig {{kubeconfig}} --policy {{policy}} -o json"
# What our program is made of.
PARTS = ("rebalancer", "strategies", "policies")


@dataclass(frozen=True)
class Program:
    """A program under measurement."""

    name: str  # in the tables
    command: str  # a command line; {kubeconfig} and {policy} stand for files
    # Where ours is run; another program gets its policies in the descheduler's words, and no options of ours.
    tree: Path | None = None

    def policy(self, policy: Object) -> Object:
        """Return a policy as this program gets it."""
        return policy if self.tree else in_reference_words(policy)

    def run(self, kubeconfig: Path, policy: Path, options: Sequence[str] = ()) -> "CompletedProcess[str]":
        """Run it to its end, with these options if it is ours."""
        files = {"kubeconfig": shlex.quote(str(kubeconfig)), "policy": shlex.quote(str(policy))}
        command = [*shlex.split(self.command.format(**files)), *(options if self.tree else ())]
        return run(*command, cwd=self.tree, code=None, timeout=TIMEOUT)


def ours(root: Path, copy: Path, *, steer: bool) -> Program:
    """Return our program as it is now in a tree: it is copied, so that editing it meanwhile changes nothing."""
    for part in PARTS:
        shutil.copytree(root / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    return Program("rebalancer", f"{OURS} --steer" if steer else OURS, copy)
