"""One trial: a cluster is built, and one program works on it for some cycles."""

import copy
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import yaml

from rebalancer.policy.usage import LoadWatcher
from rebalancer.usage import load_watcher
from tests.e2e.api import Object
from tests.e2e.binaries import provide_trimaran
from tests.e2e.harness import ControlPlane
from tests.e2e.load_aware import LoadAware
from tests.e2e.waiting import wait_for
from tests.outcome.load import NODES, make_load, scattered, varied
from tests.outcome.policies import bounds_of
from tests.outcome.program import Program
from tests.outcome.result import Cycle, Result, as_foreseen, result_of, shares_told
from tests.outcome.scenarios import Scenario
from tests.outcome.stage import Placement, Stage
from tests.outcome.state import Moved, State
from tests.outcome.zones import make_wishes

REFUSED = 429
EXAMPLE = Path(__file__).parents[2] / "examples/trimaran-scheduler.yaml"
#: How long it counts a pod by what it is expected to use, and a little more.
NEW = timedelta(seconds=65)
# load-watcher measures once a minute.
FIGURES_DEADLINE = 300.0


class SecondScheduler(LoadAware):
    """Trimaran and load-watcher beside a control plane that runs, with metrics-server."""

    name = "trimaran"

    def __init__(self, plane: ControlPlane, binary: Path) -> None:
        super().__init__(plane, binary, yaml.safe_load(EXAMPLE.read_text()))
        file = plane.directory / "schedulers.json"
        file.write_text(json.dumps(self.configuration))
        #: What tells our program about it.
        self.options = ("--scheduler-config", str(file))
        self._watches = False

    def policy(self, policy: Object) -> Object:
        """Return a policy with load-watcher's address."""
        made = copy.deepcopy(policy)
        for provider in made["metricsProviders"]:
            if "loadWatcher" in provider:
                provider["loadWatcher"]["url"] = self.url
        return made

    def settle(self, changed: datetime) -> None:
        """Wait until the scheduler has figures in which all pods count as measured that were bound by that time."""
        if not self._watches:
            wait_for(lambda: datetime.now(UTC) > changed + NEW, "pods that are no longer new", interval=1)
            self.watch()
            self._watches = True
            return
        watcher = partial(load_watcher.ask, LoadWatcher(url=self.url))
        wait_for(lambda: watcher().ended > changed + NEW, "figures of load-watcher", FIGURES_DEADLINE, interval=1)
        self.wait_answered()


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
        second = None
        if scenario.load_aware:
            second = stack.enter_context(SecondScheduler(plane, provide_trimaran()))
            policy, options = second.policy(policy), second.options
        wishes = make_wishes(load, seed) if scenario.zones else None
        stage = Stage(plane.api, nodes, second.name if second else "", wishes)
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
            if second:
                second.settle(stage.changed_at)
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
