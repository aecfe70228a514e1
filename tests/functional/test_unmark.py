"""`rebalancer unmark` takes off what steering, holding and marking have left on nodes, and nothing else."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.kube.marks import ANNOTATION, Mark
from tests.functional.marking import LABEL, fill, labels_on
from tests.functional.marking import marked as under_pressure
from tests.functional.objects import node
from tests.functional.test_holding import hold

NOW = datetime.now(UTC)
RECORD = "kube-rebalancer/runs"
KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")
NAMES = ("h1", "h2", "n1", "n2", "n3", "n4", "p1", "p2")
SPOT = {"key": "spot", "effect": "PreferNoSchedule"}
#: What the record says that marks were before.
NOTED = '[{"run": "mark", "keys": ["status=presure", "example.com/hot=cpu"], "expires": "2026-01-15T12:00:00Z"}]'


def marked(name, run, expires, keys=KEYS):
    taints = [SPOT, *({"key": key, "value": run, "effect": "PreferNoSchedule"} for key in keys)]
    found = node(name, taints=taints)
    metadata = {**found["metadata"], "uid": name, "annotations": {ANNOTATION: Mark(run, keys, expires).text()}}
    return {**found, "metadata": metadata}


@pytest.fixture
def cluster(server):
    """Of steering (n), holding (h) and marking (p): one mark is over, and one in use; `n3` has lost its annotation."""
    fill(server, "h1", "h2", "n4", "p1", "p2")
    orphan = node("n3", taints=[SPOT, {"key": KEYS[0], "value": "run-3", "effect": "PreferNoSchedule"}])
    server.add(marked("n1", "run-1", NOW - timedelta(hours=1)))
    server.add(marked("n2", "run-2", NOW + timedelta(hours=1)))
    server.add({**orphan, "metadata": {**orphan["metadata"], "uid": "n3"}})
    hold(server, "h1", NOW - timedelta(seconds=1))
    hold(server, "h2", NOW + timedelta(hours=1))
    under_pressure(server, "p1", "cpu", left=timedelta(seconds=-1), label="status=presure")
    under_pressure(server, "p2", "cpu", taint="example.com/hot=cpu")
    server.leases.note(RECORD, NOTED, "rebalancer-mark")
    return server


@pytest.fixture
def unmark(rebalancer, cluster):
    return lambda *options: rebalancer.at(cluster, "unmark", *options)


def marked_nodes(server):
    """Nodes that are not as others have made them."""
    found = {each["metadata"]["name"]: each for each in map(server.node, NAMES)}
    assert all(SPOT in each["spec"]["taints"] for each in found.values())
    return [
        name
        for name, each in found.items()
        if each["spec"]["taints"] != [SPOT]
        or each["metadata"].get("annotations")
        or each["metadata"]["labels"] != {"kubernetes.io/hostname": name}
    ]


def test_what_is_over_is_taken_off_and_all_with_all(unmark, cluster):
    """What may still be relied on stays, and is named; a dry run reads, and no more."""
    dry = unmark("--all", "--dry-run")
    assert (dry.exit_code, dry.stdout.count("would be unmarked")) == (0, 7)
    assert {request.method for request in cluster.requests} == {"GET"}

    done = unmark()
    assert (done.exit_code, marked_nodes(cluster)) == (0, ["h2", "n2", "p2"])
    unexpired = "stays, since it has not expired (--all takes it off)"
    for start, end in (
        ("node h1 (held empty by run run-0, until ", "unmarked"),
        ("node h2 (held empty by run run-0, until ", unexpired),
        ("node n1 (run run-1, until ", "unmarked"),
        ("node n2 (run run-2, until ", "stays, since that run may be at work (--all takes it off)"),
        ("node n3 (nobody's)", "unmarked"),
        ("node p1 (pressure: cpu, until ", "unmarked"),
        ("node p2 (pressure: cpu, until ", unexpired),
    ):
        (line,) = [each for each in done.stdout.splitlines() if each.startswith(start)]
        assert line.endswith(f": {end}")

    assert unmark("--all").exit_code == 0
    assert marked_nodes(cluster) == []
    nothing = "no node carries kube-rebalancer/avoid, kube-rebalancer/hold or kube-rebalancer/pressure\n"
    assert unmark("--all").stdout == nothing


def test_the_record_says_what_is_ours_and_an_annotation_alone_does_not(unmark, cluster):
    """A policy may have had another key when marks were set, and the usual one is always ours.

    A kubelet can write the annotation of its node: that stays, and the taint that it names too.
    """
    keys, over = ("example.com/steer", "example.com/steer-more"), NOW - timedelta(hours=1)
    cluster.add(marked("n1", "run-1", over, keys))
    cluster.add(marked("n2", "run-2", over, ("example.com/gpu",)))
    cluster.leases.note(RECORD, f"[{Mark('run-1', keys, NOW).text()}]")

    outcome = unmark("--key", "example.com/later")

    assert outcome.exit_code == 0
    assert marked_nodes(cluster) == ["h2", "n2", "p2"]
    assert "node n2 keeps example.com/gpu=run-2:PreferNoSchedule, which no run has noted as its own" in outcome.stdout


def test_marks_that_cannot_be_taken_off_are_said(unmark, cluster):
    """With an exit code of their own; the others go."""
    cluster.fail("PATCH", "/api/v1/nodes/n1", status=403, message='admission webhook "w" denied the request: no')

    outcome = unmark("--all")

    assert outcome.exit_code == 4
    assert marked_nodes(cluster) == ["n1"]
    assert "node n1 (run run-1" in outcome.stdout
    assert "denied the request: no" in outcome.stdout


def test_it_finds_labels_that_have_lost_their_annotation(server, rebalancer):
    """Of the usual key, or of the one that is named."""
    fill(server)
    for name, label in (("n1", {LABEL: "cpu"}), ("n2", {"status": "presure"}), ("n3", {"status": "retired"})):
        found = server.node(name)
        server.add({**found, "metadata": {**found["metadata"], "labels": label}})

    rebalancer.at(server, "unmark")
    rebalancer.at(server, "unmark", "--mark", "status=presure")

    assert labels_on(server) == {}
    assert labels_on(server, "status") == {"n3": "retired"}


@pytest.mark.parametrize(("lease", "left"), [("rebalancer", ["n1"]), ("rebalancer-mark", ["p1", "p2"])])
def test_the_record_may_be_in_a_lease_of_another_name(unmark, cluster, lease, left):
    """A release may have one of its own, for runs or for marking; a policy may have had other keys."""
    keys = ("example.com/steer", "example.com/steer-more")
    cluster.add(marked("n1", "run-1", NOW - timedelta(hours=1), keys))
    cluster.leases.note(RECORD, f"[{Mark('run-1', keys, NOW).text()}]")
    cluster.leases.held["kube-system", "mine"] = cluster.leases.held.pop(("kube-system", lease))

    unmark("--all")
    assert marked_nodes(cluster) == left
    assert unmark("--all", "--leader-elect-resource-name", "mine").exit_code == 0
    assert marked_nodes(cluster) == []


def test_the_record_may_be_in_another_namespace(unmark, cluster):
    """A release may have its Leases elsewhere; what only their record knows comes off too."""
    cluster.leases.held["tools", "rebalancer-mark"] = cluster.leases.held.pop(("kube-system", "rebalancer-mark"))

    assert "example.com/hot=cpu" in unmark("--all").stdout
    assert marked_nodes(cluster) == ["p1", "p2"]
    assert unmark("--all", "--leader-elect-resource-namespace", "tools").exit_code == 0
    assert marked_nodes(cluster) == []
