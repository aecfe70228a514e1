"""`rebalancer unmark` takes off what steered runs have left on nodes, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.kube.marks import ANNOTATION, Mark
from tests.functional.objects import node

NOW = datetime.now(UTC)
RECORD = "kube-rebalancer/runs"
KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")
SPOT = {"key": "spot", "effect": "PreferNoSchedule"}


def marked(name, run, expires, keys=KEYS):
    taints = [SPOT, *({"key": key, "value": run, "effect": "PreferNoSchedule"} for key in keys)]
    found = node(name, taints=taints)
    metadata = {**found["metadata"], "uid": name, "annotations": {ANNOTATION: Mark(run, keys, expires).text()}}
    return {**found, "metadata": metadata}


@pytest.fixture
def cluster(server):
    """One mark has expired, one is in use, one taint has lost its annotation, one node carries nothing."""
    orphan = node("n3", taints=[SPOT, {"key": KEYS[0], "value": "run-3", "effect": "PreferNoSchedule"}])
    server.add(marked("n1", "run-1", NOW - timedelta(hours=1)))
    server.add(marked("n2", "run-2", NOW + timedelta(hours=1)))
    server.add({**orphan, "metadata": {**orphan["metadata"], "uid": "n3"}})
    server.add(node("n4", taints=[SPOT]))
    return server


@pytest.fixture
def unmark(rebalancer, cluster, tmp_path):
    kubeconfig = cluster.kubeconfig(tmp_path)
    return lambda *options: rebalancer("unmark", "--kubeconfig", kubeconfig, *options)


def marked_nodes(server):
    taints = {name: server.node(name)["spec"]["taints"] for name in ("n1", "n2", "n3", "n4")}
    assert all(SPOT in each for each in taints.values())
    return [
        name for name, found in taints.items() if found != [SPOT] or server.node(name)["metadata"].get("annotations")
    ]


def test_what_is_over_is_taken_off(unmark, cluster):
    """Expired, or without an annotation; what a run may still rely on stays, and is named."""
    outcome = unmark()

    assert outcome.exit_code == 0
    assert marked_nodes(cluster) == ["n2"]
    assert [line.rpartition(": ")[2] for line in outcome.stdout.splitlines()] == [
        "unmarked",
        "unmarked",
        "stays, since that run may be at work (--all takes it off)",
    ]
    assert "node n1 (run run-1, until " in outcome.stdout
    assert "node n3 (nobody's)" in outcome.stdout


def test_all_takes_off_everything(unmark, cluster):
    """And says so when nothing is there any more."""
    assert unmark("--all").exit_code == 0
    assert marked_nodes(cluster) == []
    assert (
        unmark("--all").stdout
        == "no node carries kube-rebalancer/avoid, kube-rebalancer/hold or kube-rebalancer/pressure\n"
    )


def test_a_dry_run_changes_nothing(unmark, cluster):
    """It reads, and no more."""
    outcome = unmark("--all", "--dry-run")

    assert outcome.exit_code == 0
    assert outcome.stdout.count("would be unmarked") == 3
    assert marked_nodes(cluster) == ["n1", "n2", "n3"]
    assert {request.method for request in cluster.requests} == {"GET"}


def test_marks_of_another_key_are_found_by_the_record(unmark, cluster):
    """A policy may have had another key when they were set; the usual one is always ours."""
    keys = ("example.com/steer", "example.com/steer-more")
    cluster.add(marked("n1", "run-1", NOW - timedelta(hours=1), keys))
    cluster.leases.note(RECORD, f"[{Mark('run-1', keys, NOW).text()}]")

    assert unmark().exit_code == 0
    assert marked_nodes(cluster) == ["n2"]


def test_an_annotation_alone_makes_no_taint_ours(unmark, cluster):
    """A kubelet can write it: the taint stays and is named, and the annotation with it."""
    cluster.add(marked("n1", "run-1", NOW - timedelta(hours=1), ("example.com/gpu",)))

    outcome = unmark("--all")

    assert outcome.exit_code == 0
    assert marked_nodes(cluster) == ["n1"]
    assert "node n1 keeps example.com/gpu=run-1:PreferNoSchedule, which no run has noted as its own" in outcome.stdout


def test_marks_that_cannot_be_taken_off_are_said(unmark, cluster):
    """With an exit code of their own; the others go."""
    cluster.fail("PATCH", "/api/v1/nodes/n1", status=403, message='admission webhook "w" denied the request: no')

    outcome = unmark("--all")

    assert outcome.exit_code == 4
    assert marked_nodes(cluster) == ["n1"]
    assert "node n1 (run run-1" in outcome.stdout
    assert "denied the request: no" in outcome.stdout
