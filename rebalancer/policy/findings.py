"""Errors and warnings found while a policy is read, collected so that its author sees them all together."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from rebalancer.errors import CANNOT_BE_USED, STRICT, UNSAFE, PolicyError, Problem
from rebalancer.untrusted.address import without_userinfo

_FEW = 25


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: the nearest known word, or all known words if none is near and they are few."""
    words = {each.lower(): each for each in known if each}
    near = get_close_matches(word.lower(), words, n=1)
    if near:
        return f"; did you mean {words[near[0]]!r}?"
    if 0 < len(words) <= _FEW:
        return f"; known are {', '.join(words.values())}"
    return ""


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the author's own document."""

    path: str  # keys and indices from the top, like `profiles[0].name`; empty at the top
    line: int  # counted from 1

    def key(self, name: str, line: int | None = None) -> "Place":
        """Return the place of a key in this map."""
        dot = "." if self.path else ""
        step = f"{dot}{name}" if _PLAIN_KEY.fullmatch(name) else f'["{name}"]'
        return Place(self.path + step, self.line if line is None else line)

    def item(self, index: int, line: int) -> "Place":
        """Return the place of an item in this list."""
        return Place(f"{self.path}[{index}]", line)


_ERROR, _UNSAFE, _IGNORED, _NOTICE = "error", "unsafe", "ignored", "notice"


class Findings:
    """Errors, parts that are ignored, and notices, each with its place; a repeated one is kept once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Problem], None] = {}

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return bool(self._of(_ERROR))

    def error(self, place: Place, message: str) -> None:
        """Note something that makes the policy unusable."""
        self._note(_ERROR, place, message)

    def ignored(self, place: Place, message: str) -> None:
        """Note something that has no effect; in strict reading it is an error."""
        self._note(_IGNORED, place, message)

    def unsafe(self, place: Place, message: str) -> None:
        """Note what must not be followed by evictions, as a key that may be a misspelt limit; else it is `ignored`."""
        self._note(_UNSAFE, place, message)

    def notice(self, place: Place, message: str) -> None:
        """Note something worth knowing; never an error."""
        self._note(_NOTICE, place, message)

    def settle(self, source: str, *, strict: bool, live: bool = False, what: str = "policy") -> tuple[Problem, ...]:
        """Return the warnings, in the order of the file, or raise the errors as a PolicyError.

        If it is `strict`, parts that are ignored are errors; `live` says that evictions follow.  Messages tell where
        the text is from and what it is.  Errors also name the parts that are ignored: they are often the cause.
        """
        if self.failed or (strict and self._of(_IGNORED, _UNSAFE)):
            why = CANNOT_BE_USED if self.failed else STRICT
            raise PolicyError(source, self._of(_ERROR, _IGNORED, _UNSAFE), why=why, what=what)
        if live and (unsafe := self._of(_UNSAFE)):
            raise PolicyError(source, unsafe, why=UNSAFE, what=what)
        return self._of(_IGNORED, _UNSAFE, _NOTICE)

    def _note(self, kind: str, place: Place, message: str) -> None:
        # Without the passwords of URLs: it quotes what the author wrote, at times in the wrong place.
        self._found[kind, Problem(without_userinfo(place.path), without_userinfo(message), place.line)] = None

    def _of(self, *kinds: str) -> tuple[Problem, ...]:
        found = dict.fromkeys(problem for kind, problem in self._found if kind in kinds)
        return tuple(sorted(found, key=lambda problem: (problem.line, problem.path)))
