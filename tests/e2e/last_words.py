"""What failed, in few lines: the end of a long output is what is kept of it, and is read first."""

from collections.abc import Iterable, Iterator

import pytest

#: Lines of one failure, characters of a line, and failures.
LINES, WIDTH, MOST = 24, 240, 12


def last_words(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Each failure's name, and its exception with what the assertion compared."""
    for report in list(reports)[:MOST]:
        yield f"{report.nodeid} ({report.when})"
        yield from (f"    {line[:WIDTH]}" for line in _shortened(_said(report)))


def _said(report: pytest.TestReport) -> list[str]:
    """The lines that pytest marks as the exception's, and where it was raised; all of a text without such lines."""
    lines = report.longreprtext.splitlines()
    said = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    crash = getattr(report.longrepr, "reprcrash", None)
    return [*said, f"at {crash.path}:{crash.lineno}"] if said and crash else said or lines


def _shortened(lines: list[str]) -> list[str]:
    half = LINES // 2
    return lines if len(lines) <= LINES else [*lines[:half], f"... {len(lines) - LINES} lines ...", *lines[-half:]]
