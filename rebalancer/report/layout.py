"""Text for a terminal of a given width: names are never broken or cut, only prose wraps."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from rich.cells import cell_len

_GAP = 2
#: Narrower prose is hard to read: it gets lines of its own instead.
_NARROWEST_PROSE = 36
#: With a no-break space, where lines are not wrapped.
_PERCENT = "\u00a0%"


def hanging(columns: Sequence[Sequence[str]], prose: Sequence[str], width: int, indent: int = 0) -> Iterator[list[str]]:
    """Yield the lines of each row: names with prose beside them, or below them if the terminal is too narrow.

    Example, 60 columns wide and then 40:

        web-1  node-4  node-4 at cpu 94 % > 65 %: 29 points
                       over
        web-1  node-4
          node-4 at cpu 94 % > 65 %: 29 points
          over

    Args:
        columns: the names of each row; every row has the same number of names.
        prose: the text of each row; may be empty.
        width: of the terminal, in cells.
        indent: blanks before each line.
    """
    widths = _widths(columns)
    start = indent + sum(each + _GAP for each in widths)
    beside = width - start >= _NARROWEST_PROSE
    for names, text in zip(columns, prose, strict=True):
        padded = "".join(_padded(name, size + _GAP) for name, size in zip(names, widths, strict=True))
        head = " " * indent + padded
        if not beside:
            below = " " * (indent + _GAP)
            heads = (
                [head.rstrip()] if start - _GAP <= width else [indent * " " + line for line in _packed(names, width)]
            )
            yield [*heads, *(below + line for line in wrapped(text, width - len(below)))]
            continue
        first, *others = wrapped(text, width - start) or [""]
        yield [(head + first).rstrip(), *(" " * start + line for line in others)]


def _packed(names: Sequence[str], width: int) -> list[str]:
    """Return names in as few lines as they fit in, none of them broken."""
    lines: list[str] = []
    for name in filter(None, names):
        if lines and cell_len(lines[-1]) + _GAP + cell_len(name) <= width:
            lines[-1] += " " * _GAP + name
        else:
            lines.append(name)
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))


def wrapped(text: str, width: int) -> list[str]:
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
