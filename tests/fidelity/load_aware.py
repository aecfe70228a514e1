"""A random cluster whose pods are placed by a real scheduler that knows load, the simulator asked first.

Nodes are busy with pods that request nothing.  metrics-server and load-watcher measure their usage, and load-watcher
stands still from then on, so that both the scheduler and the simulator go by the same figures.
"""

import time
from datetime import UTC, datetime
from pathlib import Path

from rebalancer.cluster.measured import NodeLoads
from rebalancer.cluster.resources import parse_resources
from rebalancer.policy.usage import LoadWatcher
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from rebalancer.usage import load_watcher
from tests.e2e.api import Object
from tests.e2e.builders import pod
from tests.e2e.harness import ControlPlane
from tests.e2e.load_aware import LoadAware
from tests.e2e.waiting import wait_for
from tests.fidelity.clusters import APPS, random_template
from tests.fidelity.comparison import Comparison, SchedulerLog
from tests.fidelity.trial import TEMPLATES, Plan, Trial, read

#: The version of the scheduler.
MINOR = 35
#: How long a pod counts by what it is expected to use, in seconds, and a little more.
NEW = 65
LIMITS = ("0", "200m", "1", "2500m")


def _profile(name: str, plugin: str, **args: object) -> Object:
    config = {"name": plugin, "args": {"watcherAddress": "here", **args}}
    multi_point = {"enabled": [{"name": plugin, "weight": 3}]}
    return {"schedulerName": name, "plugins": {"multiPoint": multi_point}, "pluginConfig": [config]}


CONFIGURATION: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "percentageOfNodesToScore": 100,
    "profiles": [
        # The second target counts for both: the plugin keeps one.
        _profile("packing-less", "TargetLoadPacking", targetUtilization=25),
        _profile(
            "packing",
            "TargetLoadPacking",
            targetUtilization=55,
            defaultRequestsMultiplier="1.3",
            defaultRequests={"cpu": "333m"},
        ),
        _profile("balancing", "LoadVariationRiskBalancing"),
        _profile("balancing-more", "LoadVariationRiskBalancing", safeVarianceMargin=2, safeVarianceSensitivity=0.5),
    ],
}


def run_load_aware(binaries: Path, trimaran: Path, plan: Plan, comparison: Comparison) -> None:
    with ControlPlane(binaries) as running:
        running.start_metrics_server()
        with LoadAware(running, trimaran, CONFIGURATION) as second:
            LoadAwareTrial(running, plan, comparison, second).run()


class LoadAwareTrial(Trial):
    def __init__(self, running: ControlPlane, plan: Plan, comparison: Comparison, second: LoadAware) -> None:
        super().__init__(running, plan, comparison)
        self._log = SchedulerLog(second.log)
        self._second = second

    def run(self) -> None:
        self._set_up()
        self._make_busy()
        loads = self._measured()
        snapshot = read(self._api)
        state = State(snapshot, snapshot.scheduler_inputs, MINOR)
        configuration = read_configuration(self._second.configuration)
        simulator = Simulator(state, lambda state: profiles(state, configuration, lambda _: loads))
        templates = [self._template(number % APPS) for number in range(TEMPLATES)]
        for number in range(self._plan.placements):
            self._place(f"pod-{number:04}", self._random.choice(templates), state, simulator)

    def _make_busy(self) -> None:
        """Let what is allocatable be less than the capacity, and have each node use some of it."""
        for node in self._api.list("Node"):
            name, share = node["metadata"]["name"], self._random.random()
            cores = _millicores(node["status"]["capacity"]["cpu"])
            less = {"status": {"allocatable": {"cpu": f"{cores - 300}m"}}}
            self._api.patch("Node", name, "", less, subresource="status")
            memory = f"{int(share * 3000)}Mi"
            self._api.create(pod(f"busy-{name}", node=name, usage=f"{int(cores * share)}m", memory_usage=memory), "red")

    def _measured(self) -> NodeLoads:
        started = time.monotonic()
        names = {node["metadata"]["name"] for node in self._api.list("Node")}

        def known() -> bool:
            metrics = {each["metadata"]["name"] for each in self._api.list("NodeMetrics")}
            return time.monotonic() - started > NEW and names <= metrics

        wait_for(known, "figures of all nodes", interval=1)
        self._second.watch()
        answer = load_watcher.ask(LoadWatcher(url=self._second.url))
        self._second.freeze()
        return load_watcher.loads(answer, datetime.now(UTC))

    def _template(self, app: int) -> Object:
        template = random_template(self._random, app)
        template["spec"]["schedulerName"] = self._random.choice(CONFIGURATION["profiles"])["schedulerName"]
        for container in template["spec"]["containers"]:
            requested = container.get("resources", {}).get("requests", {}).get("cpu", "0")
            limits = [each for each in LIMITS if _millicores(each) >= _millicores(requested)]
            if self._random.random() < 0.3 and limits and "resources" in container:
                container["resources"].setdefault("limits", {})["cpu"] = self._random.choice(limits)
        return template


def _millicores(quantity: str) -> int:
    return parse_resources({"cpu": quantity})["cpu"]
