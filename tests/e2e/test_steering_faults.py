"""Waves on the real control plane, and what becomes of their soft taints whatever happens.

After the next run no taint of ours is left, no taint of others is lost, and no PodDisruptionBudget was broken.
"""

import itertools
import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from rebalancer.kube.marks import ANNOTATION
from tests.e2e.acts import by_node, cordon
from tests.e2e.api import ApiError, Object
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program
from tests.e2e.waiting import wait_for
from tests.e2e.watching import ReadyWatch

#: How often a run is killed; 20 unless given.
KILLS = int(os.environ.get("REBALANCER_E2E_KILLS", "20"))
PROBE = Path(__file__).parent / "probe"
KEYS = {"kube-rebalancer/avoid", "kube-rebalancer/avoid-more"}
APPS = tuple(f"web-{number}" for number in range(8))
REPLICAS = 2 * len(APPS)
SPOT = {"key": "example.com/spot", "value": "true", "effect": "PreferNoSchedule"}
NODES = ("a", "b", "c")
#: A Lease that is lost is noticed within a second; all else as usual, since a busy machine may stand still for seconds.
QUICK = (
    "--leader-elect-lease-duration", "15s", "--leader-elect-renew-deadline", "10s", "--leader-elect-retry-period", "1s",
)  # fmt: skip
LEASE = ("Lease", "rebalancer", "kube-system")


@dataclass
class Stage:
    """Nodes, two with a soft taint of others, and pods under a PDB that are to move to node c in waves."""

    controlplane: ControlPlane
    namespace: Namespace
    program: Program

    @property
    def api(self):
        return self.controlplane.api

    def policy(self, waves=4):
        args = {"to": "c", "waves": waves, "namespaces": {"include": [self.namespace.name]}}
        profile = {
            "name": "e2e",
            "pluginConfig": [{"name": "MoveInWaves", "args": args}],
            "plugins": {"balance": {"enabled": ["MoveInWaves"]}},
        }
        steering = {"settle": "20s"}
        head = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
        return {**head, "steering": steering, "maxNoOfPodsToEvictTotal": 8, "profiles": [profile]}

    def start(self, waves=4):
        return self.program.start(self.policy(waves), *QUICK)

    def run(self, waves=4):
        return self.program.run(self.policy(waves), *QUICK)

    def taints(self, name):
        found: list[Object] = self.api.read("Node", name)["spec"].get("taints", [])
        return found

    def marked(self):
        return [each["metadata"]["name"] for each in self.api.list("Node") if is_marked(each)]

    def wait_marked(self, running):
        """Wait for the first marks, and return the nodes that carry them."""
        marked = wait_for(lambda: self.marked() or not running.runs(), "the first mark on a node")
        assert running.runs(), running.stderr()
        return marked if isinstance(marked, list) else []

    def settle(self):
        self.namespace.wait_ready(REPLICAS)
        for app in APPS:
            self.namespace.wait_budget(app, allowed=1)

    def assert_clean(self):
        """Nothing of ours is left, and all of others is there."""
        assert self.marked() == []
        nodes = {each["metadata"]["name"] for each in self.api.list("Node")}
        assert all(SPOT in self.taints(name) for name in nodes & {"a", "b"})


def is_marked(found):
    taints = found["spec"].get("taints", ())
    return any(each["key"] in KEYS for each in taints) or ANNOTATION in found["metadata"].get("annotations", {})


@pytest.fixture
def stage(controlplane, namespace, program, monkeypatch):
    """Eight pairs of pods on two nodes, of which one may be missing at once, and an empty third node."""
    monkeypatch.setenv("PYTHONPATH", f"{PROBE}{os.pathsep}{Path(__file__).parents[2]}")
    namespace.create(*(node(name, cpu="16", taints=[] if name == "c" else [SPOT]) for name in NODES))
    cordon(controlplane.api, "c")
    namespace.create(*(each for app in APPS for each in (deployment(app, replicas=2), pdb(app, max_unavailable=1))))
    made = Stage(controlplane, namespace, program)
    made.settle()
    cordon(controlplane.api, "c", on=False)
    return made


@pytest.fixture
def watched(stage):
    """At no moment an app was without a Ready pod."""
    with ReadyWatch(stage.api, stage.namespace.name) as watch:
        yield
    assert set(watch.fewest) == set(APPS)
    assert min(watch.fewest.values()) >= 1


@pytest.mark.usefixtures("watched")
def test_replacements_land_where_they_are_steered(stage):
    """In waves of two, one after the other; without a trace afterwards."""
    outcome = stage.run()

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 8
    assert by_node(stage.namespace.wait_ready(REPLICAS))["c"] == 8
    stage.assert_clean()


@pytest.mark.usefixtures("watched")
def test_killed_at_random_moments(stage, tell):
    """SIGKILL leaves marks; the next run takes them off before it begins, and its own at its end."""
    chance, left = random.Random(17), 0
    for _ in range(KILLS):
        looks = chance.randint(1, 60)
        with stage.start() as running:
            stage.wait_marked(running)
            countdown = iter(range(looks))
            wait_for(lambda: next(countdown, None) is None or not running.runs(), "the moment to kill")  # noqa: B023
            running.send(signal.SIGKILL)
            running.finish()
        stage.api.delete(*LEASE)  # as if the time of the one that was killed were over
        left += bool(stage.marked())
        stage.settle()
        outcome = stage.run(waves=1)
        assert outcome.exit_code == 0, outcome.stderr
        stage.assert_clean()
        stage.settle()
    tell(f"steering: {KILLS} runs killed, {left} of them with marks on nodes")
    assert left


def test_api_server_started_again(stage):
    """In the middle of a wave; the run goes on or ends, and nothing stays."""
    with stage.start() as running:
        stage.wait_marked(running)
        stage.controlplane.restart_apiserver()
        running.finish()
    stage.settle()

    outcome = stage.run(waves=1)

    assert outcome.exit_code == 0, outcome.stderr
    stage.assert_clean()


OTHER: Object = {"key": "example.com/other", "effect": "PreferNoSchedule"}


@pytest.mark.usefixtures("watched")
def test_another_controller_writes_taints_all_the_time(stage):
    """It adds and removes a taint on each node as fast as it can; what it wrote last is there, and so is all else."""
    last: dict[str, list[Object]] = {name: [] for name in NODES}
    writes, stop = 0, threading.Event()

    def write_on():
        nonlocal writes
        for name in itertools.cycle(NODES):
            if stop.is_set():
                return
            found = stage.api.read("Node", name)
            taints = [each for each in found["spec"].get("taints", []) if each["key"] != OTHER["key"]]
            mine = [] if last[name] else [OTHER]
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            try:
                stage.api.patch("Node", name, "", {"metadata": version, "spec": {"taints": [*mine, *taints]}})
            except ApiError as error:
                if error.status != 409:
                    raise
            else:
                last[name] = mine
                writes += 1

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write_on)
        try:
            outcome = stage.run()
        finally:
            stop.set()
        writer.result()

    assert outcome.exit_code == 0, outcome.stderr
    assert writes > 50
    stage.assert_clean()
    for name in NODES:
        assert [each for each in stage.taints(name) if each["key"] == OTHER["key"]] == last[name]
