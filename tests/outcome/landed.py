"""Where a steered program says that replacements landed, by its JSON reports."""

import json
from collections.abc import Iterable


def foreseen(reports: Iterable[str]) -> float:
    """Return the share of replacements that landed as foreseen, in percent; all, if none are told of."""
    landed = [
        move["landed"]["foreseen"]
        for report in reports
        if report.strip()
        for strategy in json.loads(report).get("strategies", ())
        for wave in strategy.get("waves") or ()
        for move in wave["moves"]
        if move["landed"]
    ]
    return 100 * sum(landed) / len(landed) if landed else 100.0
