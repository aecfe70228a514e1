"""Writes the report to standard output; if that fails, the evicted pods are still named on standard error.

No line grows with the cluster, so that log collectors accept every line.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import IO, Any

import click
import msgspec
import yaml

from rebalancer.report.nodes import Report
from rebalancer.report.view import Color, lines
from rebalancer.untrusted.printable import printable

Line = dict[str, Any]

_PIECE = 1 << 20


def report_lines(report: Report, *, everything: bool = False) -> Iterator[Line]:
    """Yield the objects of a report, each with its `kind`; nodes only if `everything` is wanted."""
    ts = {"ts": report["now"]}
    for eviction in report["evictions"]:
        yield {"kind": "Eviction", **ts, "dryRun": report["dryRun"], **eviction}
    for failure in report["failures"]:
        yield {"kind": "Failure", **ts, **failure}
    counts = Counter((each["profile"], each["strategy"], each["by"]) for each in report["refusals"])
    for (profile, strategy, by), count in counts.items():
        yield {"kind": "Refusals", **ts, "profile": profile, "strategy": strategy, "by": by, "count": count}
    for run in report["strategies"]:
        yield {"kind": "Strategy", **ts, **{key: value for key, value in run.items() if not isinstance(value, list)}}
        for node in run["nodes"] if everything else ():
            yield {"kind": "Node", **ts, "profile": run["profile"], "strategy": run["strategy"], **node}
    for warning in report["warnings"]:
        yield {"kind": "Warning", **ts, "msg": warning}
    yield {
        "kind": "Summary",
        **ts,
        **{key: report[key] for key in ("dryRun", "cluster", "skipped")},
        "evicted": len(report["evictions"]),
        "refused": len(report["refusals"]),
        "failed": len(report["failures"]) + sum(1 for run in report["strategies"] if run["error"]),
        "nodes": report["nodes"],
    }


def deliver(report: Report, output: str, stream: IO[str] | None, *, everything: bool, color: Color = "auto") -> str:
    """Write a report; return why that failed, empty if it did not.

    The output is `table`, `wide` (a table with everything), `json`, `yaml`, `html` or `lines` (a JSON object a line).
    The stream is None if it was closed when the program began.  Raises BrokenPipeError if the reader of a dry run's
    report has closed the pipe, like `head`; no harm is done.
    """
    if stream is None:
        return "standard output is closed"
    try:
        _write(report, output, stream, everything=everything or output == "wide", color=color)
        stream.flush()
    except BrokenPipeError as error:
        if report["dryRun"]:
            raise
        return _given_up(stream, error)
    except (OSError, ValueError) as error:  # ValueError: the stream was closed
        return _given_up(stream, error)
    return ""


def undelivered(report: Report, trouble: str) -> str:
    """Return one line with the most important part of a lost report: which pods were evicted."""
    told = [f"the report cannot be written: {trouble}"]
    if not report["dryRun"]:
        told.append(f"evicted: {_names(report['evictions']) or 'nothing'}")
        if report.get("unknown"):
            told.append(f"evicted or not: {_names(report['unknown'])}")
    return "; ".join(told)


def _write(report: Report, output: str, stream: IO[str], *, everything: bool, color: Color) -> None:
    match output:
        case "json":
            stream.writelines(_as_json(report))
            stream.write("\n")
        case "lines":
            stream.writelines(json.dumps(line) + "\n" for line in report_lines(report, everything=everything))
        case "html":
            from rebalancer.report.page import html  # noqa: PLC0415  templates: only where asked

            click.echo(html(report).encode(errors="backslashreplace"), file=stream, nl=False)
        case "yaml":
            stream.write(yaml.safe_dump(report, sort_keys=False))
        case _:
            stream.writelines(f"{line}\n" for line in lines(report, stream, everything=everything, color=color))


def _as_json(report: Report) -> Iterator[str]:
    """Yield the report as indented JSON in ASCII, in pieces: 120,000 verdicts are 60 MB."""
    encoded = msgspec.json.format(msgspec.json.encode(report), indent=2)
    if not encoded.isascii():
        encoded = json.dumps(report, indent=2).encode()
    for start in range(0, len(encoded), _PIECE):
        yield encoded[start : start + _PIECE].decode()


def _given_up(stream: IO[str], error: Exception) -> str:
    """Discard all further output: Python would write the rest of the buffer again when it ends, and fail again."""
    if not isinstance(error, OSError):
        return str(error)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return error.strerror or str(error)


def _names(rows: list[Mapping[str, Any]]) -> str:
    return ", ".join(printable(f"{each['namespace']}/{each['name']}") for each in rows)
