"""A terminal: the program asks on it, the test reads the screen and types."""

import codecs
import os
import pty
import select
import time
from typing import Any, Self

from tests.functional.program import TIMEOUT_SECONDS, Outcome, Program

_CHUNK = 65_536


class Terminal:
    """A program whose standard input and standard error are a terminal; standard output is a pipe."""

    def __init__(self, program: Program, *arguments: object, **settings: Any) -> None:
        self._screen, terminal = pty.openpty()
        self._shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within one
        settings = {"stdin": terminal, "stderr": terminal} | settings
        if settings.get("stdout", ...) is None:  # on the terminal too
            settings["stdout"] = terminal
        self.process = program.start(*arguments, **settings)
        os.close(terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._screen)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def read_until(self, text: str) -> str:
        """Wait until a text is shown; return all that is shown by then, and forget it."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while text not in self._shown:
            assert time.monotonic() < until, self._shown
            assert self._read(), self._shown
        shown, self._shown = self._shown, ""
        return shown

    def finish(self) -> Outcome:
        """Wait for the end; what was shown since `read_until` is standard error."""
        while self._read():
            pass
        stdout, _ = self.process.communicate(timeout=TIMEOUT_SECONDS)
        return Outcome(self.process.returncode, stdout, self._shown)

    def _read(self) -> bool:
        """Read some of the screen; say whether there may be more."""
        ready, _, _ = select.select([self._screen], [], [], TIMEOUT_SECONDS)
        assert ready, f"nothing more was shown within {TIMEOUT_SECONDS:g} s: {self._shown}"
        try:
            read = os.read(self._screen, _CHUNK)
        except OSError:  # the program has closed its end
            return False
        self._shown = (self._shown + self._decoder.decode(read)).replace("\r\n", "\n")
        return bool(read)
