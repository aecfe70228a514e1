"""Whole cycles: `plugin` and `policy_run` cases as policies on a snapshot file."""

import json

from tests.conformance import program
from tests.conformance.answers import Answer, equal, evictions
from tests.conformance.corpus import Case
from tests.conformance.snapshots import document, filler_nodes


def run(case: Case) -> Answer:
    result = program.run(case["policy"], document(case, filler_nodes(case)), case["now"])
    if case["assert"].get("policy_rejected"):  # the counts of such a case are out of reach of any policy
        return equal(result.exit_code, program.USAGE_ERROR)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["skipped"] is None
    assert report["failures"] == []
    return evictions([f"{each['namespace']}/{each['name']}" for each in report["evictions"]], case["assert"])


def errors(case: Case) -> list[str]:
    """Return why strategies could not run."""
    result = program.run(case["policy"], document(case, filler_nodes(case)), case["now"])
    return [each["error"] for each in json.loads(result.stdout)["strategies"] if each["error"]]
