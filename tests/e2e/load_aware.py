"""A real scheduler that knows load beside the default one, and the real load-watcher that it asks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from tests.e2e.api import Object
from tests.e2e.harness import ControlPlane
from tests.e2e.waiting import wait_for
from tests.ports import free_port

SCHEDULER = "trimaran"
WATCHER = "load-watcher"
#: Scores, and what the scheduler gets from load-watcher.
_DETAIL = "schedule_one=10,client=6"
_ANSWERED = b"received status code 200 from watcher"


class LoadAware:
    """The two processes, in a control plane that has metrics-server; killed when the context ends.

    load-watcher measures once a minute, and the scheduler asks it every half minute.
    """

    def __init__(self, running: ControlPlane, binary: Path, configuration: Object) -> None:
        self._running = running
        self._binary = str(binary)
        self._address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self._address}"  # where load-watcher answers
        # Of all schedulers, this one's profiles among them; it has that address wherever it names one.
        self.configuration: Object = _addressed(configuration, self.url)

    def __enter__(self) -> Self:
        """Start the scheduler, before the pods: it takes all pods that it finds at its start for new ones."""
        path = self._running.scheduler_configuration(_without_default(self.configuration), SCHEDULER)
        options = ["--config", str(path), "--secure-port", "0", f"--vmodule={_DETAIL}"]
        self._running.processes.start(SCHEDULER, [self._binary, "kube-scheduler", *options])
        return self

    def __exit__(self, *_: object) -> None:
        self._running.processes.kill(SCHEDULER, WATCHER)

    @property
    def log(self) -> Path:
        return self._running.processes.log(SCHEDULER)

    def watch(self, kubeconfig: Path | None = None) -> None:
        """Start load-watcher, which measures at once, and wait until the scheduler has its figures.

        Its kubeconfig is that of the other components, which may do everything, if none is given.
        """
        kubeconfig = kubeconfig or self._running.directory / "components.kubeconfig"
        command = [self._binary, WATCHER, self._address]
        self._running.processes.start(WATCHER, ["env", f"KUBE_CONFIG={kubeconfig}", *command])
        self.wait_answered()

    def wait_answered(self) -> None:
        """Wait until the scheduler has asked load-watcher once more, each profile for itself."""
        due = self._answers() + len(_without_default(self.configuration)["profiles"])
        wait_for(lambda: self._answers() >= due, "load-watcher's figures at the scheduler")
        self._running.processes.check()

    def freeze(self) -> None:
        """Let load-watcher stand still: the scheduler keeps the figures that it has."""
        self._running.processes.pause(WATCHER)

    def _answers(self) -> int:
        return self.log.read_bytes().count(_ANSWERED)


def _addressed(part: Any, url: str) -> Any:
    if isinstance(part, dict):
        return {key: url if key == "watcherAddress" else _addressed(value, url) for key, value in part.items()}
    return [_addressed(each, url) for each in part] if isinstance(part, list) else part


def _without_default(configuration: Object) -> Object:
    profiles: Iterable[Object] = configuration["profiles"]
    return {**configuration, "profiles": [each for each in profiles if each["schedulerName"] != "default-scheduler"]}
