"""Counts the cases of the corpus by what became of them, whatever number of processes ran them."""

from collections import Counter
from collections.abc import Iterator

from _pytest.terminal import TerminalReporter

PROPERTY = "conformance"
_WORDS = {"pass": "pass", "different": "different", "waiting": "waiting", "left out": "left out", "failed": "failed"}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    counts = Counter(_outcomes(terminalreporter))
    if counts:
        shown = ", ".join(f"{counts[kind]} {word}" for kind, word in _WORDS.items() if kind != "pass")
        terminalreporter.write_line(f"conformance: {counts['pass']} of {counts.total()} pass, {shown}")


def _outcomes(reporter: TerminalReporter) -> Iterator[str]:
    for status in ("passed", "skipped", "failed"):
        for report in reporter.getreports(status):
            kind = dict(report.user_properties).get(PROPERTY)
            if kind and report.when == "call":
                yield "failed" if status == "failed" else str(kind)
