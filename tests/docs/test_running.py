"""docs/running.md: its tables say what is served and what can be asked for; the schema of reports names each key."""

import json
import re
from pathlib import Path

import jsonschema

from rebalancer.cli.main import main
from rebalancer.run.options import Options
from rebalancer.run.telemetry import Telemetry, pages
from rebalancer.telemetry.metrics import MOST_SERIES, ProcessMetrics
from tests.attack.whims import Time
from tests.functional.conftest import rebalancer, server  # noqa: F401  fixtures
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

TEXT = (Path(__file__).parents[2] / "docs" / "running.md").read_text()
ROW = re.compile(r"^\|( `(?:descheduler|rebalancer)_[^|]*)\|([^|]*)\|", re.MULTILINE)
#: What the library adds to a name, by type.
SUFFIXES = {"counter": "_total"}


def documented():
    """Labels by metric, as the table has them."""
    found: dict[str, set[str]] = {}
    before: set[str] = set()
    for names, labels in ROW.findall(TEXT):
        before = before if labels.strip() == "the same" else {each for each in labels.strip().split(", ") if each}
        found |= {name.strip("` "): before for name in names.split(",")}
    return found


def declared():
    """Labels by metric, as the program declares them; the old name of a counter has those of the counter."""
    found = {}
    for collector in list(ProcessMetrics(dry_run=False).registry._collector_to_names):
        name = getattr(collector, "_name", "")
        if name.startswith(("descheduler_", "rebalancer_")):
            found[name + SUFFIXES.get(collector._type, "")] = set(collector._labelnames)
    return found | {"descheduler_pods_evicted": found["descheduler_pods_evicted_total"]}


def test_the_table_has_every_metric_with_its_labels():
    assert documented() == declared()


def test_paths_flags_and_the_bound_are_those_of_the_program():
    """A table cannot promise what the command line does not take."""
    known = {name for option in main.commands["run"].params for name in option.opts}
    paths = {path for path in pages(Telemetry(Options("demo")), metrics=True) if path.count("/") == 1}

    assert set(re.findall(r"`(--[a-z-]+)", TEXT)) <= known
    assert [path for path in paths if f"`{path}`" not in TEXT] == []
    assert f"{MOST_SERIES:,} series" in TEXT


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
