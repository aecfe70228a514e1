"""A real Pushgateway on the loopback; it comes with Debian's package `prometheus-pushgateway`."""

import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.waiting import wait_for
from tests.ports import free_port

needed = pytest.mark.skipif(shutil.which("prometheus-pushgateway") is None, reason="there is no prometheus-pushgateway")


class Pushgateway:
    """One that listens; see `running`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def pushed(self) -> str:
        """All that was pushed, as Prometheus would scrape it."""
        return self.fetch("/metrics") or ""

    def fetch(self, path: str) -> str | None:
        """What is served; None if nothing is."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            return None


@contextmanager
def running() -> Iterator[Pushgateway]:
    """Start one, and see to its end."""
    port = free_port()
    gateway = Pushgateway(port)
    in_memory = "--persistence.file="  # Debian's default is a file that outlives it
    with subprocess.Popen(
        ["prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{port}", in_memory],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_for(lambda: gateway.fetch("/-/ready") is not None, "the Pushgateway")
            yield gateway
        finally:
            process.terminate()
