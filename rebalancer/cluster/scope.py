"""Steps that can be taken back: a log of how to undo them, and scopes that end by doing so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Scope:
    """One attempt; `keep` says that it succeeded."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Let what was done so far, and is done from now on, outlive this scope."""
        self.kept = True


class UndoLog:
    """How to take back the steps of the scopes that are open; without an open scope steps are final."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._depth = 0

    def record(self, step: Callable[[], None]) -> None:
        """Remember how to take back what was just done."""
        if self._depth:
            self._steps.append(step)

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Take back what is recorded meanwhile, the last step first, unless the scope is told to keep it."""
        start, scope = len(self._steps), Scope()
        self._depth += 1
        try:
            yield scope
        finally:
            self._depth -= 1
            self._end(start, scope)

    def _end(self, start: int, scope: Scope) -> None:
        if scope.kept and self._depth:
            return  # the next outer scope takes it back
        steps = self._steps[start:]
        del self._steps[start:]
        if not scope.kept:
            for step in reversed(steps):
                step()
