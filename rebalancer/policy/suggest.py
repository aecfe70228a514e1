"""What a misspelt word may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches

_FEW = 16


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message: the nearest known word, or all known words if none is near and they are few."""
    words = {each.lower(): each for each in known}
    near = get_close_matches(word.lower(), words, n=1)
    if near:
        return f"; did you mean {words[near[0]]!r}?"
    if 0 < len(words) <= _FEW:
        return f"; known are {', '.join(words.values())}"
    return ""
