"""A real Pushgateway on the loopback; it comes with Debian's package `prometheus-pushgateway`."""

import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port, serving

needed = pytest.mark.skipif(shutil.which("prometheus-pushgateway") is None, reason="there is no prometheus-pushgateway")


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Start one, yield its address, and see to its end; its log is in the folder."""
    address = f"127.0.0.1:{free_port()}"
    in_memory = "--persistence.file="  # Debian's default is a file that outlives it
    command = ["prometheus-pushgateway", f"--web.listen-address={address}", in_memory]
    with serving(command, f"http://{address}/-/ready", folder / "pushgateway.log"):
        yield f"http://{address}"


def pushed(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        return answer.read().decode()
