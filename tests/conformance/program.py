"""The program as a person calls it, with a folder of its own for each case."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.functional.program import Program

USAGE_ERROR = 2


@contextmanager
def program() -> Iterator[Program]:
    with TemporaryDirectory() as folder:
        yield Program(Path(folder))
