"""A pod's container in the middle of its work: its first eviction waits until the test lets it go on."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.e2e.api import Object
from tests.e2e.container import Container, Ended, ended
from tests.e2e.harness import ControlPlane
from tests.e2e.proxy import Hold, Proxy
from tests.e2e.waiting import wait_for


@dataclass
class AtWork:
    """A container whose first eviction is on its way."""

    container: Container
    process: "subprocess.Popen[str]"
    hold: Hold

    def go_on(self) -> None:
        """Let the eviction reach the API server."""
        self.hold.release()

    def finish(self) -> Ended:
        """Let it go on to its end."""
        self.go_on()
        return ended(self.process)

    def stop(self) -> Ended:
        """End a loop after a cycle, as a kubelet does."""
        wait_for(lambda: "rebalancer_cycles_total{" in self.container.metrics(), "the first cycle's end")
        self.process.terminate()
        return ended(self.process)


@contextmanager
def at_work(controlplane: ControlPlane, pod: Object) -> Iterator[AtWork]:
    """Start a pod's container; the block begins when it asks for its first eviction."""
    hold = Hold("POST", "/eviction")
    with Proxy(controlplane, hold) as proxy:
        container = Container(controlplane, pod, server=proxy.url)
        with container.started() as process:
            hold.wait()
            yield AtWork(container, process, hold)
