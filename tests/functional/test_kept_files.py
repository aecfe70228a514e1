"""What version 0.1.0 has written is read: its files are kept here, and are never made anew."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebalancer.memory.document import decoded
from tests.functional.objects import OLD, policy

KEPT = Path(__file__).parents[1] / "kept"
CLUSTER = Path(__file__).parents[2] / "examples" / "cluster.json"


@pytest.fixture(params=["0.1.0"])
def kept(request):
    return KEPT / request.param


def test_a_report_becomes_a_page(kept, rebalancer):
    done = rebalancer("report", kept / "report.json")

    assert done.exit_code == 0, done.stderr
    assert "shop/search-7c9d06" in done.stdout


def test_a_plan_is_applied(kept, rebalancer):
    done = rebalancer("apply", kept / "plan.json", "--policy", "demo", "--snapshot", CLUSTER, "-o", "json")

    assert done.exit_code == 0, done.stderr
    applied = json.loads(done.stdout)["plan"]
    assert (applied["moves"], applied["evicted"], applied["skipped"]) == (15, 15, [])


def test_a_snapshot_is_read_with_its_memory(kept, rebalancer):
    remembering = policy(OLD, trust={"enabled": True, "waitReady": False})

    done = rebalancer.offline(remembering, kept / "snapshot.json")

    assert done.exit_code == 0, done.stderr
    assert {"default/a"} <= set(done.evicted())
    assert not [each for each in done.report["warnings"] if "memory" in each]


def test_marks_on_nodes_are_found_and_taken_off(kept, rebalancer, server):
    marks = json.loads((kept / "marks.json").read_text())
    server.add(*marks["nodes"])

    done = rebalancer.at(server, "unmark")

    assert done.exit_code == 0, done.stderr
    assert "node n1 (run 20260115T120000Z-9f3a11c2, until 2026-01-15T12:00:00Z" in done.stdout
    assert [each["key"] for each in server.node("n1")["spec"]["taints"]] == ["spot"]


def test_the_memory_is_decoded(kept):
    memory = decoded(json.loads((kept / "memory.json").read_text()), datetime(2026, 1, 15, 13, tzinfo=UTC))

    assert [(each.owner, each.source, each.landed) for each in memory.moves] == [("ReplicaSet/web", "n1", "n2")]
