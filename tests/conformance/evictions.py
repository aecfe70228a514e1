"""Evictions by a live run against an API server: limits, failures and the Events about them."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.conformance import program
from tests.conformance.answers import Answer, equal
from tests.conformance.corpus import Case
from tests.conformance.snapshots import node
from tests.fake_api_server import FakeApiServer

#: The descheduler evicts on no strategy's behalf here; a whole run needs one.
_STRATEGY = "PodLifeTime"
#: What the descheduler's limit errors say, by the cause that a report gives.
_LIMITS = {"TotalLimit": "per a descheduling cycle", "NodeLimit": "per node", "NamespaceLimit": "per namespace"}
_NOT_FOUND = "not found"
_EVICTION = "*/eviction"


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
    with TemporaryDirectory() as folder, FakeApiServer([*_nodes(case), _lenient(case["evict"])]) as server:
        if case["injected_eviction_error"]:
            _inject(server, str(case["expected_error"]))
        dry = ["--dry-run"] if case.get("dryRun") else []
        result = program.run_live(_policy(case), server.kubeconfig(Path(folder)), *dry)
        report: dict[str, Any] = json.loads(result.stdout)
        return report, [f"{each['type']} {each['reason']} {each['note']}" for each in server.events]


def _nodes(case: Case) -> list[dict[str, Any]]:
    return [node(name) for name in (case["evict"]["spec"]["nodeName"], "other")]


def _lenient(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod with the annotation that lifts protections, which the descheduler's tests leave out too."""
    return {**pod, "metadata": {**pod["metadata"], "annotations": {"descheduler.alpha.kubernetes.io/evict": "true"}}}


def _inject(server: FakeApiServer, error: str) -> None:
    if _NOT_FOUND in error:
        server.fail("POST", _EVICTION, status=404, message=error, times=None)
    else:  # an answer that is not tried again, whatever the reason
        server.fail("POST", _EVICTION, status=400, message=error, times=None)


def _policy(case: Case) -> dict[str, Any]:
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "evictionFailureEventNotification": case.get("evictionFailureEventNotification"),
        **case["limits"],
        "profiles": [
            {
                "name": "conformance",
                "pluginConfig": [{"name": _STRATEGY, "args": {"maxPodLifeTimeSeconds": 0}}],
                "plugins": {"deschedule": {"enabled": [_STRATEGY]}},
            }
        ],
    }


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
