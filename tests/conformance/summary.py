"""Counts the cases of the corpus by what became of them, whatever number of processes ran them.

With -v the cases that do not pass are listed.
"""

from collections import Counter
from collections.abc import Iterator

from _pytest.terminal import TerminalReporter

PROPERTY = "conformance"
_EXCEPTIONS = ("different", "left out", "failed")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    found = sorted(_outcomes(terminalreporter))
    if not found:
        return
    counts = Counter(kind for kind, _ in found)
    if terminalreporter.config.get_verbosity() > 0:
        for kind, name in found:
            if kind in _EXCEPTIONS:
                terminalreporter.write_line(f"conformance, {kind}: {name}")
    exceptions = ", ".join(f"{counts[kind]} {kind}" for kind in _EXCEPTIONS)
    terminalreporter.write_line(f"conformance: {counts['pass']} of {counts.total()} pass, {exceptions}")


def _outcomes(reporter: TerminalReporter) -> Iterator[tuple[str, str]]:
    for status in ("passed", "skipped", "failed"):
        for report in reporter.getreports(status):
            kind = dict(report.user_properties).get(PROPERTY)
            if kind and report.when == "call":
                yield "failed" if status == "failed" else str(kind), report.nodeid.partition("[")[2].removesuffix("]")
