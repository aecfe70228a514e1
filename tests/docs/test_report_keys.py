"""The schema of reports, to which the user guide sends its reader, names each key, and no other."""

import json
import re
from pathlib import Path

import jsonschema

from tests.attack.whims import Time
from tests.functional.conftest import rebalancer, server  # noqa: F401  fixtures
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

SCHEMA = json.loads((Path(__file__).parents[2] / "policies/schema/report-v1.json").read_text())


def test_each_key_of_a_real_report_is_in_the_schema(server, rebalancer):  # noqa: F811
    """Of plans that weigh nodes and hold some, and of a live run in which pods go, stay, fail and are in doubt."""
    compaction = ("HighNodeUtilization", {"thresholds": {"cpu": 30, "memory": 30}, "selection": "compaction"})
    holding = ("run", "--policy", rebalancer.policy(policy(compaction)), "--steer", "--hold", "15m")
    held = rebalancer(*holding, "--snapshot", "examples/three-nodes.json", "-o", "json").report
    demo = rebalancer("run", "--policy", "demo", "--snapshot", "examples/cluster.json", "-o", "json").report
    for each in two_nodes_with(*old_pods("a", "b", "c", "d")):
        server.add(each)
    server.fail("POST", "*/pods/b/eviction", status=400, message="no such thing")
    server.fail("POST", "*/pods/c/eviction", status=500, message="etcdserver: request timed out")
    live = rebalancer.play(server, policy(OLD, maxNoOfPodsToEvictTotal=2), Time()).report

    assert held["heldNodes"]
    assert all(live[each] for each in ("evictions", "refusals", "failures", "unknown"))
    for report in (held, demo, live):
        jsonschema.validate(report, SCHEMA)


def test_each_count_of_a_strategy_is_in_the_schema():
    """Strategies count by names that the report's words know."""
    from rebalancer.report.document import _COUNTED  # noqa: PLC0415  the names that have words

    told = SCHEMA["properties"]["strategies"]["items"]["properties"]["counts"]["description"]

    assert {*_COUNTED, "nodes", "over", "under", "below", "receivers"} <= set(re.findall(r"\w+", told))
