"""Steps that can be undone: a log of how to undo them, and scopes that do so when they end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Scope:
    """One attempt; `keep` says that it succeeded."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Do not undo this scope's steps, earlier or later ones, when it ends."""
        self.kept = True


class UndoLog:
    """How to undo the steps of the open scopes; without an open scope, steps are final."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._depth = 0

    def record(self, step: Callable[[], None]) -> None:
        """Remember how to undo what was just done."""
        if self._depth:
            self._steps.append(step)

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Undo what is recorded within the scope, the last step first, unless the scope is told to keep it."""
        start, scope = len(self._steps), Scope()
        self._depth += 1
        try:
            yield scope
        finally:
            self._depth -= 1
            self._end(start, scope)

    def _end(self, start: int, scope: Scope) -> None:
        if scope.kept and self._depth:
            return  # the steps belong to the next outer scope
        steps = self._steps[start:]
        del self._steps[start:]
        if not scope.kept:
            for step in reversed(steps):
                step()
