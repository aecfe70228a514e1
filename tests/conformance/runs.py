"""Whole cycles: `plugin` and `policy_run` cases as policies on a snapshot file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.conformance import background
from tests.conformance.answers import Answer, equal, evictions
from tests.conformance.corpus import Case
from tests.conformance.program import USAGE_ERROR, program
from tests.conformance.snapshots import document, filler_nodes
from tests.fake_servers import FakePrometheus

#: Why a run may fail: metrics-server knows no extended resources, which fails the descheduler too.
_UNMEASURED = "which this source does not measure"


def run(case: Case) -> Answer:
    if case.get("background_eviction_pods"):
        return background.run(case)
    with _policy(case) as policy, program() as rebalancer:
        file = rebalancer.folder / "cluster.json"
        file.write_text(document(case, filler_nodes(case)))
        result = rebalancer.offline(policy, file, "--now", case["now"])
    if case["assert"].get("policy_rejected"):  # the counts of such a case are out of reach of any policy
        return equal(result.exit_code, USAGE_ERROR)
    report = result.report
    errors = [each["error"] for each in report["strategies"] if each["error"]]
    assert all(_UNMEASURED in each for each in errors), errors
    assert result.exit_code == (1 if errors else 0), result.stderr
    assert report["skipped"] is None
    assert report["failures"] == []
    return evictions(result.evicted(), case["assert"])


@contextmanager
def _policy(case: Case) -> Iterator[Mapping[str, Any]]:
    """Yield the policy of a case; its Prometheus answers every query with the samples of the case."""
    if not case.get("prometheus_samples"):
        yield case["policy"]
        return
    with FakePrometheus(case["prometheus_samples"]) as server:
        providers = [{"source": "Prometheus", "prometheus": {"url": server.url}}]
        yield {**case["policy"], "metricsProviders": providers}
