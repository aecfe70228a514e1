"""The scheduler's arithmetic: whole numbers, rounded as Go rounds."""

from collections.abc import Sequence
from math import floor

WHOLE = 100
_HALF = 0.5


def scaled(scores: Sequence[int], most: int, *, reverse: bool = False) -> list[int]:
    """Return scores scaled so that `most` becomes 100, or 0 if reversed; if it is 0, so are all scores."""
    points = {score: WHOLE * score // (most or 1) for score in set(scores)}
    if reverse:
        points = {score: WHOLE - point for score, point in points.items()}
    return list(map(points.__getitem__, scores))


def rounded(value: float) -> int:
    """Return the nearest whole number, halves away from zero, for values that are not negative."""
    whole = floor(value)
    return whole + (value - whole >= _HALF)


def quotient(dividend: int, divisor: int) -> int:
    """Return a quotient rounded towards zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole
