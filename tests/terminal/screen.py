"""The program in a terminal of its own, and what is on its screen."""

import fcntl
import functools
import io
import os
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

from tests import forks

ROOT = Path(__file__).parents[2]

#: What in the surroundings of the tests decides on colours and sizes.
_OURS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "KUBECONFIG")
_TIMEOUT_SECONDS = 120.0


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Shown:
    """What a terminal shows once the program has ended, and what the program wrote."""

    lines: Sequence[str]
    raw: str

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def on_screen(*arguments: object, columns: int = 120, variables: Mapping[str, str] | None = None) -> Shown:
    """Run the program in the checkout's folder on a terminal so wide, and return what it shows; the same only once."""
    return _run(arguments, columns, frozenset((variables or {}).items()))


@functools.cache
def _run(arguments: Sequence[object], columns: int, variables: frozenset[tuple[str, str]]) -> Shown:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    surroundings = {name: value for name, value in os.environ.items() if name not in _OURS}
    process = forks.start(
        arguments,
        cwd=ROOT,
        env=surroundings | {"TERM": "xterm-256color", "LANG": "C.UTF-8"} | dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.DEVNULL,  # signs of life would come and go there, as the machine is fast or slow
    )
    os.close(theirs)
    with process:
        raw = _everything(ours)
        process.wait(_TIMEOUT_SECONDS)
    return _read(raw, columns)


def _everything(terminal: int) -> str:
    pieces = []
    with open(terminal, "rb", buffering=0) as stream:
        try:
            while piece := stream.read(65_536):
                pieces.append(piece)
        except OSError:  # how Linux tells that nobody writes any more
            pass
    return b"".join(pieces).decode()


def _read(raw: str, columns: int) -> Shown:
    rows = sum(1 + len(line) // columns for line in raw.split("\n"))  # so that nothing leaves the screen
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(raw)
    last = max((row for row, cells in screen.buffer.items() if cells), default=-1)
    lines = [line.rstrip() for line in screen.display[: last + 1]]
    return Shown(lines, raw)
