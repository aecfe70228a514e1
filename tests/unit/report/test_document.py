"""The report as a document, whose keys are an interface."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rebalancer.engine.ledger import StrategyRun
from rebalancer.engine.limits import Limits
from rebalancer.eviction.observation import Observation
from rebalancer.policy.moving import Share
from rebalancer.report.document import CLOCKS, Finished, document, summary, timestamp
from tests.make import cluster, decide, node, pod, snapshot
from tests.unit.engine.stand_ins import Greedy
from tests.unit.report.example import FILE, LIVE, report

SCHEMA = json.loads((Path(__file__).parents[3] / "policies/schema/report-v1.json").read_text())


def test_the_schema_requires_every_key_it_knows() -> None:
    """No key comes and goes, but for the figures of a cause, which depend on its code."""
    pending = [SCHEMA]
    while pending:
        part = pending.pop()
        if "properties" in part:
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is (part["properties"].keys() == {"code"})
        pending += [*part.get("properties", {}).values(), *part.get("oneOf", ())]
        pending += [part["items"]] if "items" in part else []


@pytest.mark.parametrize(
    "document_",
    [
        pytest.param(report(), id="of a file"),
        pytest.param(report(LIVE, dry_run=False), id="of a live cluster"),
        pytest.param(report({"context": None, "server": "https://10.0.0.1"}), id="in a pod"),
        pytest.param(report(skipped="1 ready node"), id="of a cycle that was skipped"),
    ],
)
def test_reports_keep_to_the_schema(document_: dict[str, Any]) -> None:
    assert list(Draft202012Validator(SCHEMA).iter_errors(json.loads(json.dumps(document_)))) == []


def test_limits_in_percent_are_text_and_say_how_many_the_command_line_allows() -> None:
    on = cluster([node("n1"), node("n2")], [])
    ledger = decide(on, Greedy(), limits=Limits(per_node=Share(2.5), total=Share(10.0, at_most=5)))

    found = document(Finished(ledger, on, True, FILE, "wall"))

    assert found["overview"]["limits"] == {"total": "10% (at most 5)", "node": "2.5%", "namespace": None}
    assert Draft202012Validator(SCHEMA).is_valid(json.loads(json.dumps(found)))


def test_what_happened_is_in_the_report() -> None:
    found = report(warnings=("look out",))
    asked = {"namespace": "default", "profile": "test", "strategy": "Greedy"}
    pod_of_web = {
        **asked,
        "name": "a",
        "uid": "uid-default-a",
        "node": "n1",
        "owner": {"kind": "ReplicaSet", "name": "web"},
        "reason": "greed",
        "cause": {"code": "Custom", "message": "greed"},
        "destination": None,
        "background": False,
        "restarted": None,
    }

    assert found["evictions"] == [
        pod_of_web,
        {**pod_of_web, "name": "b", "uid": "uid-default-b", "node": "n2", "owner": {"kind": "Widget", "name": "w"}},
    ]
    assert found["unknown"] == [{**pod_of_web, "name": "e", "uid": "uid-default-e", "error": "500: in smoke"}]
    assert found["refusals"] == [
        {
            **asked,
            "name": "c",
            "node": "n1",
            "by": "MirrorPods",
            "reason": "a mirror pod, the kubelet would keep it",
            "cause": {"code": "MirrorPods"},
        }
    ]
    assert found["failures"] == [{**asked, "name": "d", "node": "n2", "error": "422: on fire"}]
    assert found["nodes"] == {"total": 3, "considered": 2}
    assert found["cluster"] == FILE
    counts = ("strategy", "evicted", "unknown", "refused", "error")
    assert [tuple(run[key] for key in counts) for run in found["strategies"]] == [
        ("Greedy", 2, 1, 1, None),
        ("Scripted", 0, 0, 0, "no figures"),
    ]


def test_warnings_of_all_sources_are_listed_once() -> None:
    assert report(warnings=("look out", "look out"))["warnings"] == [
        "look out",
        "Pod default/x is malformed",
        "test/Scripted: some nodes have no figures",
    ]


def test_a_pod_without_owners_has_none() -> None:
    on = cluster([node("n1"), node("n2")], [pod("a", owners=None, evict_annotation=True)])

    found = document(Finished(decide(on, Greedy()), on, True, FILE, "wall"))

    assert found["evictions"][0]["owner"] is None


def test_times_are_written_as_kubernetes_does() -> None:
    """Z for UTC; another offset stays."""
    assert timestamp(datetime(2026, 1, 15, 12, tzinfo=UTC)) == "2026-01-15T12:00:00Z"
    assert timestamp(datetime(2026, 1, 15, 12, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-15T12:00:00+02:00"


def test_every_clock_is_in_the_schema() -> None:
    assert SCHEMA["properties"]["clock"]["enum"] == list(CLOCKS)


def test_a_namespace_that_does_not_exist_is_told_with_a_similar_one() -> None:
    run = StrategyRun("", "", 0, 0, 0, 0.0, None, Observation({"pods": 1}), ("shop", "none", "shpo"))

    told = summary(run, snapshot([], [pod("a", namespace="shop")], namespaces={"none": {}}))

    assert told.endswith("namespace none; 0 pods in namespace shpo: there is no such namespace (did you mean shop?)")
