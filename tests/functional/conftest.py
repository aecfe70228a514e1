"""The program and a fake API server."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_api_server import FakeApiServer
from tests.functional.program import Program


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as running:
        yield running


@pytest.fixture
def rebalancer(tmp_path: Path) -> Iterator[Program]:
    """The program; what it does to the logging of this process is undone."""
    root, ours = logging.getLogger(), logging.getLogger("rebalancer")
    handlers, level = root.handlers[:], ours.level
    program = Program(tmp_path)
    yield program
    program.close()
    root.handlers[:] = handlers
    ours.setLevel(level)
