"""The scheduler's arithmetic: whole numbers, rounded as Go rounds."""

from collections.abc import Sequence
from math import floor

WHOLE = 100
_HALF = 0.5


def normalized(scores: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Return scores scaled so that the highest becomes 100; if reversed, so that the highest becomes 0."""
    different = set(scores)
    most = max(different, default=0) or 1  # without any score all are 0
    points = {score: WHOLE - WHOLE * score // most if reverse else WHOLE * score // most for score in different}
    return list(map(points.__getitem__, scores))


def rounded(value: float) -> int:
    """Return the nearest whole number, halves away from zero, for values that are not negative."""
    whole = floor(value)
    return whole + (value - whole >= _HALF)


def quotient(dividend: int, divisor: int) -> int:
    """Return a quotient rounded towards zero."""
    whole = abs(dividend) // abs(divisor)
    return whole if (dividend < 0) == (divisor < 0) else -whole
