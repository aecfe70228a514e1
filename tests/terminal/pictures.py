"""Pictures of the terminal for the README, drawn from what the program prints: `make pictures`."""

import io
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.terminal.screen import ROOT, on_screen

COLUMNS = 120
_EXAMPLE = ("--snapshot", "examples/cluster.json")
#: The pictures ask nobody for a font.
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """A part of what a command prints in the checkout's folder; the name is that of the file in docs."""

    name: str
    command: tuple[str, ...]
    part: Callable[[list[str]], list[str]]

    @property
    def path(self) -> Path:
        return ROOT / "docs" / f"{self.name}.svg"

    def drawn(self) -> str:
        lines = self.part(on_screen(*self.command, columns=COLUMNS).raw.splitlines())
        text = Text.from_ansi("\n".join(lines))
        drawn = svg([text], COLUMNS, title=f"rebalancer {' '.join(self.command)}", unique_id=self.name)
        return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def svg(lines: Iterable[Text], columns: int, **names: str) -> str:
    """Draw what a terminal shows."""
    console = Console(record=True, width=columns, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    for line in lines:
        console.print(line, soft_wrap=True)
    # Without `preserve` some viewers take the blanks at the beginning of a line away, and columns shift.
    return _FONTS.sub("", console.export_svg(**names)).replace("<text ", '<text xml:space="preserve" ')


def _line(lines: list[str], words: str) -> int:
    return next(number for number, line in enumerate(lines) if words in line)


PICTURES = (
    Picture(
        "terminal-nodes", ("run", "--policy", "demo", *_EXAMPLE), lambda lines: lines[: _line(lines, "Pods that go")]
    ),
    Picture(
        "terminal-pods", ("run", "--policy", "demo", *_EXAMPLE), lambda lines: lines[_line(lines, "Pods that go") :]
    ),
    Picture(
        "terminal-trouble", ("run", "--policy", "tests/terminal/policies/trouble.yaml", *_EXAMPLE), lambda lines: lines
    ),
)


if __name__ == "__main__":
    for picture in PICTURES:
        picture.path.write_text(picture.drawn())
