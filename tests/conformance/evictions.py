"""Evictions by a live run against an API server: limits, failures and the Events about them."""

from collections.abc import Mapping
from typing import Any

from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.runs import program
from tests.conformance.snapshots import node
from tests.fake_api_server import FakeApiServer
from tests.functional.objects import policy

#: The descheduler evicts on no strategy's behalf here; a whole run needs one.
_STRATEGY = "PodLifeTime"
#: What the descheduler's limit errors say, by the cause that a report gives.
_LIMITS = {"TotalLimit": "per a descheduling cycle", "NodeLimit": "per node", "NamespaceLimit": "per namespace"}


def limits(case: Case) -> Answer:
    report, events = _run(case)
    evicted = [each["node"] for each in report["evictions"]]
    observed = {
        "count": len(evicted),
        "nodes": {name: evicted.count(name) for name in case["expected_node_evictions"]},
        "error": _error(report),
        "events": [_shortened(each) for each in events],
    }
    expected = {
        "count": case["expected_evicted_count"],
        "nodes": case["expected_node_evictions"],
        "error": case["expected_error"] and _said(case["expected_error"]),
        "events": [_shortened(each.replace("NotSet", _STRATEGY)) for each in case["expected_events"] or ()],
    }
    return equal(observed, expected)


def evict(case: Case) -> Answer:
    report, _ = _run(case)
    return equal(len(report["evictions"]) == 1, case["expected_ok"])


def _run(case: Case) -> tuple[dict[str, Any], list[str]]:
    """Return the report and the Events of a live run in which the pod to evict is as old as can be."""
    nodes = [node(name) for name in (case["evict"]["spec"]["nodeName"], "other")]
    with program() as rebalancer, FakeApiServer([*nodes, _lenient(case["evict"])]) as server:
        if case["injected_eviction_error"]:
            error = str(case["expected_error"])
            status = 404 if "not found" in error else 400  # is not tried again, whatever the reason
            server.fail("POST", "*/eviction", status=status, message=error)
        notify = {"evictionFailureEventNotification": case.get("evictionFailureEventNotification")}
        rules = policy((_STRATEGY, {"maxPodLifeTimeSeconds": 0}), **notify, **case["limits"])
        report = rebalancer.run(server, rules, *(["--dry-run"] if case.get("dryRun") else [])).report
        return report, [f"{each['type']} {each['reason']} {each['note']}" for each in server.events]


def _lenient(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod with the annotation that lifts protections, which the descheduler's tests leave out too."""
    return {**pod, "metadata": {**pod["metadata"], "annotations": {"descheduler.alpha.kubernetes.io/evict": "true"}}}


def _error(report: Mapping[str, Any]) -> str | None:
    for each in report["refusals"]:
        return _LIMITS.get(each["by"], str(each["by"]))
    return next((_said(each["error"]) for each in report["failures"]), None)


def _said(error: str) -> str:
    """Return what matters of an error: which limit, or the injected words."""
    known = (*_LIMITS.values(), "eviction error")
    return next((words for words in known if words in error), error)


def _shortened(event: str) -> str:
    """Return an Event without the numbers, the reason and the request, which are this program's own words."""
    head, failed, error = event.partition(" failed: ")
    if not failed:
        return head.partition(": ")[0]
    return head + failed + (_said(error) if "eviction error" in error else error.partition(" (")[0])
