"""The second scheduler of a trial, which knows load: Trimaran, set up as the example says."""

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from rebalancer.policy.usage import LoadWatcher
from rebalancer.usage import load_watcher
from tests.e2e.api import Object
from tests.e2e.harness import ControlPlane
from tests.e2e.load_aware import LoadAware
from tests.e2e.waiting import wait_for

EXAMPLE = Path(__file__).parents[2] / "examples/trimaran-scheduler.yaml"
NAME = "trimaran"
#: How long it counts a pod by what it is expected to use, and a little more.
NEW = timedelta(seconds=65)
# load-watcher measures once a minute.
FIGURES_DEADLINE = 300.0


class SecondScheduler:
    """Trimaran and load-watcher beside the control plane, until the context ends.

    Args:
        plane: Runs, with metrics-server.
        binary: The executable that holds both.
    """

    name = NAME

    def __init__(self, plane: ControlPlane, binary: Path) -> None:
        self._processes = LoadAware(plane, binary, yaml.safe_load(EXAMPLE.read_text()))
        self._configuration = plane.directory / "schedulers.json"
        self._watches = False

    def __enter__(self) -> Self:
        """Start the scheduler; pods that are there before it would count as new."""
        self._processes.__enter__()
        self._configuration.write_text(json.dumps(self._processes.configuration))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill both."""
        self._processes.__exit__(kind, error, trace)

    @property
    def options(self) -> tuple[str, ...]:
        """What tells our program about it."""
        return ("--scheduler-config", str(self._configuration))

    def policy(self, policy: Object) -> Object:
        """Return a policy with load-watcher's address."""
        made = copy.deepcopy(policy)
        for provider in made["metricsProviders"]:
            if "loadWatcher" in provider:
                provider["loadWatcher"]["url"] = self._processes.url
        return made

    def settle(self, changed: datetime) -> None:
        """Wait until the scheduler has figures in which all pods count as measured that were bound by that time."""
        if not self._watches:
            wait_for(lambda: datetime.now(UTC) > changed + NEW, "pods that are no longer new", interval=1)
            self._processes.watch()
            self._watches = True
            return
        wait_for(lambda: self._window() > changed + NEW, "figures of load-watcher", FIGURES_DEADLINE, interval=1)
        self._processes.wait_answered()

    def _window(self) -> datetime:
        return load_watcher.ask(LoadWatcher(url=self._processes.url)).ended
