"""The second scheduler of a trial, which knows load: Trimaran, set up as the example says."""

import copy
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import yaml

from rebalancer.policy.usage import LoadWatcher
from rebalancer.usage import load_watcher
from tests.e2e.api import Object
from tests.e2e.harness import ControlPlane
from tests.e2e.load_aware import LoadAware
from tests.e2e.waiting import wait_for

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
