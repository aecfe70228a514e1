"""One trial: a cluster is built, and one program works on it for some cycles."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.binaries import provide_trimaran
from tests.e2e.harness import ControlPlane
from tests.e2e.waiting import wait_for
from tests.outcome.bound import nodes_needed
from tests.outcome.greedy import NO_MOVES, Greedy, greedy
from tests.outcome.load import make_load, points, varied
from tests.outcome.moves import Moved
from tests.outcome.policies import Bounds, bounds_of, read_policy
from tests.outcome.program import Program, Ran
from tests.outcome.scattered import scattered
from tests.outcome.scenarios import Scenario
from tests.outcome.second_scheduler import SecondScheduler
from tests.outcome.stage import Placement, Stage
from tests.outcome.state import State
from tests.outcome.zones import make_wishes

REFUSED = 429


@dataclass(frozen=True)
class Cycle:
    """One cycle.

    Attributes:
        start: The cluster before it.
        end: The cluster after it, when all pods are at rest.
        moved: The pods that went and came.
        refused: How often the Eviction API said no.
        ran: What the program said.
    """

    start: State
    end: State
    moved: Moved
    refused: int
    ran: Ran


@dataclass(frozen=True)
class Trial:
    """All cycles of one program on one cluster.

    Attributes:
        bounds: What the policy aims at.
        placement: Where the pods were at the start.
        cycles: In order.
        needed: How many nodes the pods need at least.
        yardstick: What a greedy plan comes to from the same start.
        zoned: Whether the nodes are in zones.
    """

    bounds: Bounds
    placement: Placement
    cycles: list[Cycle]
    needed: int = 0
    yardstick: Greedy = NO_MOVES
    zoned: bool = False


def play(
    binaries: Path,
    scenario: Scenario,
    program: Program,
    *,
    seed: int,
    cycles: int,
    interval: float,
    placement: Placement | None,
    told: Callable[[str], None],
) -> Trial:
    """Play one trial in a control plane of its own.

    Args:
        binaries: The control plane's executables.
        scenario: The situation.
        program: What is measured.
        seed: Of the load.
        cycles: How many.
        interval: Seconds from the beginning of a cycle to that of the next, at least; pods age meanwhile.
        placement: Where the pods are at the start; else the scheduler decides.
        told: Gets a line about how far it is.
    """
    policy = read_policy(scenario.policy)
    load = make_load(seed, scenario.pods, scenario.spread)
    with ExitStack() as stack:
        scheduler_options: list[str] = []
        plane = ControlPlane(binaries, scheduler_options)
        options: Sequence[str] = ()
        if scenario.scheduler:
            scheduler_options += ["--config", str(_scheduler_configuration(plane, scenario.scheduler))]
            options = ("--scheduler-config", str(scenario.scheduler))
        stack.enter_context(plane)
        plane.start_metrics_server()
        second = None
        if scenario.load_aware:
            second = stack.enter_context(SecondScheduler(plane, provide_trimaran()))
            policy, options = second.policy(policy), second.options
        wishes = make_wishes(load, seed) if scenario.zones else None
        stage = Stage(plane.api, second.name if second else "", wishes)
        if scenario.scattered and placement is None:
            placement = scattered(load, seed, stage.names)
        placed = stage.set_up(load, placement, half=scenario.half)
        stage.changed()
        told(f"{scenario.pods} pods run")
        written = plane.directory / "policy.yaml"
        written.write_text(yaml.safe_dump(program.policy(policy)))
        done: list[Cycle] = []
        state = stage.state()
        yardstick = greedy(state.truth, points(load, state.by_owner), bounds_of(policy))
        due = time.monotonic()
        for number in range(cycles):
            _wait_until(due)
            due = time.monotonic() + interval
            if scenario.varies:
                stage.vary(varied(load, seed, number, scenario.varies))
                state = stage.state()
            if second:
                second.settle(stage.changed_at)
            done.append(_cycle(plane, stage, program, written, state, options))
            state = done[-1].end
            told(f"cycle {number + 1} of {cycles}: {len(done[-1].moved.evicted)} evictions")
    return Trial(bounds_of(policy), placed, done, nodes_needed(load), yardstick, scenario.zones)


def _scheduler_configuration(plane: ControlPlane, given: Path) -> Path:
    """Write a configuration for the scheduler of a control plane that has not started yet."""
    connection = {"kubeconfig": str(plane.directory / "components.kubeconfig"), "qps": 500, "burst": 1000}
    settings = {"clientConnection": connection, "leaderElection": {"leaderElect": False}}
    path = plane.directory / "scheduler.json"
    path.write_text(json.dumps({**json.loads(given.read_text()), **settings}))
    return path


def _wait_until(due: float) -> None:
    left = max(due - time.monotonic(), 0.0)
    wait_for(lambda: time.monotonic() >= due, "the time of the next cycle", deadline=left + 10, interval=1.0)


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
    return Cycle(start, stage.state(), moved, sum(request.status == REFUSED for request in asked), ran)


def keep(trial: Trial, folder: Path) -> None:
    """Write what each cycle's program said, and the cluster's figures, into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, cycle in enumerate(trial.cycles, start=1):
        (folder / f"{number:02}.stdout").write_text(cycle.ran.stdout)
        (folder / f"{number:02}.stderr").write_text(cycle.ran.stderr)
    (folder / "states.json").write_text(json.dumps(list(_states(trial)), indent=1))


def _states(trial: Trial) -> Iterator[dict[str, object]]:
    for cycle in trial.cycles:
        yield {
            "start": cycle.start.shares,
            "places": cycle.start.places,
            "end": cycle.end.shares,
            "evicted": {pod: cycle.start.places.get(pod, "") for pod in sorted(cycle.moved.evicted)},
            "replacements": {pod: cycle.end.places[pod] for pod in sorted(cycle.moved.replacements)},
        }
