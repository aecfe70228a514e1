"""The report on its way out: what was done is told even where the report cannot be."""

import io
import json
import os
from collections.abc import Mapping
from typing import IO, Any

import yaml

from rebalancer.foreign.printable import printable
from rebalancer.report.lines import report_lines
from rebalancer.report.show import Color, show

Report = Mapping[str, Any]


def deliver(report: Report, output: str, stream: IO[str] | None, *, everything: bool, color: Color = "auto") -> str:
    """Write a report, and return why that was not possible; empty where it was.

    Characters that the stream's encoding lacks are written as ASCII escapes.

    Args:
        report: as `rebalancer.report.document` makes it.
        output: `table`, `wide`, `json`, `yaml` or `lines` (a JSON object a line).
        stream: standard output; None where it was closed as the program began.
        everything: as `show` has it; `wide` asks for it, too.
        color: as `show` has it.

    Raises:
        BrokenPipeError: nobody reads a dry run any more; whoever did has seen enough.
    """
    if stream is None:
        return "standard output is closed"
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    try:
        _write(report, output, stream, everything=everything or output == "wide", color=color)
        stream.flush()
    except BrokenPipeError as error:
        if report["dryRun"]:
            raise
        return _given_up(stream, error)
    except (OSError, ValueError) as error:  # the latter: it was closed
        return _given_up(stream, error)
    return ""


def undelivered(report: Report, trouble: str) -> str:
    """Return in a line what a lost report would have said: which pods were evicted."""
    lines = [f"the report cannot be written: {trouble}"]
    if not report["dryRun"]:
        lines.append(f"evicted: {_names(report['evictions']) or 'nothing'}")
        if report.get("unknown"):
            lines.append(f"evicted or not: {_names(report['unknown'])}")
    return "; ".join(lines)


def has_evicted(report: Report) -> bool:
    """Return whether pods have gone, which a run that ends in an error would do again."""
    return bool(report["evictions"]) and not report["dryRun"]


def _write(report: Report, output: str, stream: IO[str], *, everything: bool, color: Color) -> None:
    match output:
        case "json":
            stream.write(json.dumps(report, indent=2) + "\n")
        case "lines":
            stream.writelines(json.dumps(line) + "\n" for line in report_lines(report))
        case "yaml":
            stream.write(yaml.safe_dump(report, sort_keys=False))
        case _:
            show(report, stream, everything=everything, color=color)


def _given_up(stream: IO[str], error: Exception) -> str:
    # What is left in the buffer would be tried again, and complained of, as Python ends.
    if isinstance(error, OSError):
        silence(stream)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def silence(stream: IO[str]) -> None:
    """Let what else is written to a stream go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _names(rows: list[Mapping[str, Any]]) -> str:
    return ", ".join(printable(f"{each['namespace']}/{each['name']}") for each in rows)
