"""One trial: a cluster is built, and one program works on it for some cycles."""

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import yaml

from tests.commands import run
from tests.e2e.api import Object
from tests.e2e.harness import ControlPlane
from tests.outcome.load import NODES, make_load, scattered, varied
from tests.outcome.result import Cycle, Result, as_foreseen, result_of, shares_told
from tests.outcome.scenarios import Scenario, bounds_of, in_reference_words
from tests.outcome.stage import Placement, Stage
from tests.outcome.state import Moved, State
from tests.outcome.zones import make_wishes

# Seconds until a run that hangs is killed.
TIMEOUT = 300
OURS = f"{shlex.quote(sys.executable)} -m rebalancer run --yes --kubeconfig {{kubeconfig}} --policy {{policy}} -o json"
# What our program is made of.
PARTS = ("rebalancer", "strategies", "policies")
REFUSED = 429


@dataclass(frozen=True)
class Program:
    name: str  # in the tables
    command: str  # a command line; {kubeconfig} and {policy} stand for files
    # Where ours is run; another program gets its policies in the descheduler's words, and no options of ours.
    tree: Path | None = None

    def policy(self, policy: Object) -> Object:
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


def play(
    binaries: Path,  # the control plane's executables
    scenario: Scenario,  # the situation
    program: Program,  # what is measured
    *,
    seed: int,  # of the load
    nodes: int,  # how many, with as many pods for each as in the scenario
    cycles: int,  # how many
    placement: Placement | None,  # where the pods are at the start; else the scheduler decides
    told: Callable[[str], None],  # gets a line about how far it is
) -> tuple[Placement, Result]:
    """Play one trial in a control plane of its own; return where the pods were at the start, and what it came to."""
    policy = scenario.policy
    load = make_load(seed, scenario.pods * nodes // NODES, scenario.spread)
    with ExitStack() as stack:
        scheduler_options: list[str] = []
        plane = ControlPlane(binaries, scheduler_options)
        options: Sequence[str] = ()
        if scenario.scheduler:
            given = plane.directory / "given.json"
            given.write_text(json.dumps(scenario.scheduler))
            scheduler_options += ["--config", str(plane.scheduler_configuration(scenario.scheduler))]
            options = ("--scheduler-config", str(given))
        stack.enter_context(plane)
        plane.start_metrics_server()
        wishes = make_wishes(load, seed) if scenario.zones else None
        stage = Stage(plane.api, nodes, wishes)
        if scenario.scattered and placement is None:
            placement = scattered(load, seed, stage.names)
        placed = stage.set_up(load, placement, half=scenario.half)
        stage.changed()
        told(f"{sum(each.replicas for each in load)} pods run")
        written = plane.directory / "policy.yaml"
        written.write_text(yaml.safe_dump(program.policy(policy)))
        done: list[Cycle] = []
        state = stage.state()
        for number in range(cycles):
            if scenario.varies:
                stage.vary(varied(load, seed, number, scenario.varies))
                state = stage.state()
            done.append(_cycle(plane, stage, program, written, state, options))
            state = done[-1].end
            told(f"cycle {number + 1} of {cycles}: {len(done[-1].moved.evicted)} evictions")
    return placed, result_of(done, bounds_of(policy), load)


def _cycle(
    plane: ControlPlane, stage: Stage, program: Program, policy: Path, start: State, options: Sequence[str]
) -> Cycle:
    offset = plane.audit_offset()
    ran = program.run(plane.kubeconfig, policy, options)
    asked = [request for request in plane.requests_since(offset) if request.subresource == "eviction"]
    evicted = frozenset(request.name for request in asked if request.status < 300 and "dryRun" not in request.path)
    after = frozenset(pod["metadata"]["name"] for pod in stage.wait_for_pods())
    if evicted:
        stage.changed()
    moved = Moved(frozenset(start.places), evicted, after)
    if moved.unexplained:
        raise AssertionError(f"pods went without an eviction, or stayed in spite of one: {sorted(moved.unexplained)}")
    end, refused = stage.state(), sum(request.status == REFUSED for request in asked)
    told = (ran.stdout, end.places, moved.replacements)
    return Cycle(start, end, moved, refused, ran.returncode != 0, as_foreseen(*told), shares_told(*told))
