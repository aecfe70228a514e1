"""Numbers for people: ages, percentages and comparisons of them."""

from collections.abc import Callable, Mapping
from typing import Any

from rebalancer.eviction.causes import Code

Figures = Mapping[str, Any]
Words = Callable[[Figures], str]


def words(table: Mapping[Code, str | Words]) -> dict[Code, Words]:
    """Return the table with functions only; a template names details in braces."""
    return {code: each.format_map if isinstance(each, str) else each for code, each in table.items()}


_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_MOST_DECIMALS = 6
_USUAL_UNITS = 2


def age_text(seconds: float, units: int = _USUAL_UNITS) -> str:
    """Return a time in its largest units, rounded to the last of them: `40d`, `1h30m`, `5s`.

    For example, 3455964 s are 36 s less than 40 days: rounded to hours, `40d`.
    """
    sizes = [size for _, size in _UNITS]
    first = next((index for index, size in enumerate(sizes) if seconds >= size), len(sizes) - 1)
    step = sizes[min(first + units, len(sizes)) - 1]
    left = int(seconds / step + 0.5) * step
    parts = []
    for name, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size}{name}")
            left %= size
    return "".join(parts) or "0s"


def ages_text(age: float, bound: float) -> tuple[str, str]:
    """Return two times with the fewest units that show a difference: `1h30m5s`, `1h30m`."""
    for units in range(_USUAL_UNITS, len(_UNITS) + 1):
        left, right = age_text(age, units), age_text(bound, units)
        if left != right:
            return left, right
    return f"{age:g}s", f"{bound:g}s"


def number_text(value: float) -> str:
    """Return a number with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def compared(name: str, value: float, sign: str, bound: float) -> str:
    """Return a comparison of percentages with the fewest decimals that show a difference: `cpu 83 % > 50 %`."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        left, right = (f"{each:.{decimals}f}".rstrip("0").rstrip(".") for each in (value, bound))
        if left != right:
            break
    return f"{name} {left} % {sign} {right} %"
