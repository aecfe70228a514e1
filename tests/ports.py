"""Ports for servers of the tests."""

import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

from tests.e2e.waiting import wait_for

#: Below the ports that the system hands to outgoing connections: one of those could sit on a port that was found free
#: before its server listens.
PORTS = range(20000, 30000)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    return next(free_ports())


def free_ports() -> Iterator[int]:
    """Yield such ports, each once, in an order of chance that no seed repeats: several test runs may look at once."""
    for port in SystemRandom().sample(PORTS, len(PORTS)):
        if is_free(port):
            yield port
    raise RuntimeError(f"no free port between {PORTS.start} and {PORTS.stop}")


def is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@contextmanager
def serving(command: Sequence[str], ready: str, log: Path) -> Iterator[None]:
    """Run a server until the block ends, from when this address says that all is well."""
    with log.open("wb") as stderr, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr) as process:
        try:
            wait_for(lambda: process.poll() is not None or answers(ready), ready)
            assert process.poll() is None, log.read_text()[-2000:]
            yield
        finally:
            process.terminate()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return bool(response.status == 200)
    except OSError:
        return False
