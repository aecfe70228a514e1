"""The report as JSON lines: one object for each eviction, refusals as counts, a summary last.

No line grows with the cluster, so that log collectors accept every line.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Line = dict[str, Any]


def report_lines(report: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the objects of a report; `kind` says which each is."""
    for eviction in report["evictions"]:
        yield {"kind": "Eviction", "ts": report["now"], "dryRun": report["dryRun"], **eviction}
    for failure in report["failures"]:
        yield {"kind": "Failure", "ts": report["now"], **failure}
    counts = Counter((each["profile"], each["strategy"], each["by"]) for each in report["refusals"])
    for (profile, strategy, by), count in counts.items():
        yield _about(report, "Refusals", profile=profile, strategy=strategy, by=by, count=count)
    for run in report["strategies"]:
        plain = {key: value for key, value in run.items() if not isinstance(value, list)}
        yield _about(report, "Strategy", **plain)
    for warning in report["warnings"]:
        yield _about(report, "Warning", msg=warning)
    yield _summary(report)


def _summary(report: Mapping[str, Any]) -> Line:
    return _about(
        report,
        "Summary",
        dryRun=report["dryRun"],
        cluster=report["cluster"],
        skipped=report["skipped"],
        evicted=len(report["evictions"]),
        refused=len(report["refusals"]),
        failed=len(report["failures"]) + sum(1 for run in report["strategies"] if run["error"]),
        nodes=report["nodes"],
    )


def _about(report: Mapping[str, Any], kind: str, **more: Any) -> Line:
    return {"kind": kind, "ts": report["now"], **more}
