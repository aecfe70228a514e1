"""Text and numbers for people: on a terminal names are never broken, only prose wraps; elsewhere a row is a line."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rebalancer.untrusted.printable import printable

_GAP = 2
#: Narrower prose is hard to read: it gets lines of its own instead.
_NARROWEST_PROSE = 36
#: With a no-break space, where lines are not wrapped.
_PERCENT = "\u00a0%"

#: A text, and how rich styles it on a terminal, like `bold red`; empty for plain text.
StyledLine = tuple[str, str]


class Page:
    """Collects lines of visible characters for people; without a terminal's width a row is one, so `grep` finds it."""

    def __init__(self, width: int | None) -> None:
        self.lines: list[StyledLine] = []
        self.is_plain = width is None
        self.width = sys.maxsize if width is None else width

    def say(self, text: str, style: str = "") -> None:
        """Add a line as it is."""
        self.lines.append((printable(text), style))

    def title(self, text: str) -> None:
        """Add a title, and an empty line above it."""
        self.say("")
        self.prose(text, "bold")

    def prose(self, text: str, style: str = "", *, mark: str = "") -> None:
        """Add a text that wraps; it may have a mark before it, like `Warning:`."""
        if mark and self.is_plain:
            self.say(f"{mark} {text}", style)
        else:
            self.rows([(mark,) if mark else ()], [text], style=style)

    def rows(
        self,
        columns: Sequence[Sequence[str]],
        prose: Sequence[str] = (),
        *,
        indent: int = 0,
        style: str | Sequence[str] = "",
    ) -> None:
        """Add rows as `hanging` makes them, with or without prose; `style` is one for all rows, or one for each row."""
        styles = [style] * len(columns) if isinstance(style, str) else style
        names = [list(map(printable, row)) for row in columns]
        beside = list(map(printable, prose or [""] * len(columns)))
        for lines, each in zip(hanging(names, beside, self.width, indent), styles, strict=True):
            self.lines += [(line, each) for line in lines]

    def text(self) -> str:
        """Return all lines, without their styles."""
        return "".join(f"{line}\n" for line, _ in self.lines)


def hanging(columns: Sequence[Sequence[str]], prose: Sequence[str], width: int, indent: int = 0) -> Iterator[list[str]]:
    """Yield the lines of each row: names with prose beside them, or below them if the terminal is too narrow.

    Every row has the same number of names; its prose may be empty.  Widths are in cells.  Example, 60 columns wide and
    then 40:

        web-1  node-4  node-4 at cpu 94 % > 65 %: 29 points
                       over
        web-1  node-4
          node-4 at cpu 94 % > 65 %: 29 points
          over
    """
    from rich.cells import cell_len  # noqa: PLC0415  `--help` answers at once

    widths = [max(map(cell_len, column)) for column in zip(*columns, strict=True)]
    start = indent + sum(each + _GAP for each in widths)
    beside = not widths or width - start >= _NARROWEST_PROSE
    for names, text in zip(columns, prose, strict=True):
        padded = (name + " " * (size + _GAP - cell_len(name)) for name, size in zip(names, widths, strict=True))
        head = " " * indent + "".join(padded)
        if not beside:
            below = " " * (indent + _GAP)
            fits = start - _GAP <= width
            heads = [head.rstrip()] if fits else [" " * indent + name for name in names if name]
            yield [*heads, *(below + line for line in _wrapped(text, width - len(below)))]
            continue
        first, *others = _wrapped(text, width - start) or [""]
        yield [(head + first).rstrip(), *(" " * start + line for line in others)]


def _wrapped(text: str, width: int) -> list[str]:
    """Return the text in lines; a word that is wider than a line is not broken, nor is a percentage like `94 %`."""
    lines = wrap(text.replace(" %", _PERCENT), max(width, 1), break_long_words=False, break_on_hyphens=False)
    return [line.replace(_PERCENT, " %") for line in lines]


def bar(percent: float, width: int) -> str:
    """Return a bar that is full at 100 %; a share of more than 0 % fills at least one character."""
    filled = min(width, max(round(percent / 100 * width), 1 if percent > 0 else 0))
    return "█" * filled + "·" * (width - filled)


def listed(texts: Iterable[str], most: int) -> str:
    """Return texts in one line: the first ones, then how many more there are."""
    every = list(texts)
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


def count(number: int, noun: str) -> str:
    """Return a number with its noun, like `1 pod`, `2 pods` and `no pods`."""
    return plural(number, noun) if number else f"no {noun}s"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, like `1 pod`, `2 pods` and `0 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_MOST_DECIMALS = 6
_USUAL_UNITS = 2


def age_text(seconds: float, units: int = _USUAL_UNITS) -> str:
    """Return a time in its largest units, rounded: `40d` for 3455964 s (36 s less than 40 days), `1h30m`, `5s`."""
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
