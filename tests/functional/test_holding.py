"""Nodes that a run has emptied are held for as long as was asked, and not longer than until the run after that."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.kube.marks import HoldMark
from rebalancer.policy.moving import HOLD_KEY
from tests.functional.objects import DAY, node, pod, policy, replica_set

PACKS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]}]
"""
COMPACT = ("HighNodeUtilization", {"thresholds": {"cpu": 40}, "selection": "compaction"})
PACKED = policy(COMPACT, maxNoOfPodsToEvictTotal=5)
NOTHING_OLD = policy(("PodLifeTime", {"maxPodLifeTimeSeconds": 9 * DAY}))
OURS = {"key": HOLD_KEY, "effect": "PreferNoSchedule"}
SPOT = {"key": "spot", "effect": "PreferNoSchedule"}
FORBIDDEN = {"status": 403, "message": 'admission webhook "w" denied the request: no'}


@pytest.fixture
def cluster(server):
    """One pod on n1, three on n2, both below the threshold; nothing on n3."""
    for name in ("n1", "n2", "n3"):
        made = node(name, taints=[SPOT] if name == "n1" else [])
        made["metadata"]["uid"] = name
        server.add(made)
    server.add(pod("a", "n1", cpu="400m", owner="one"))
    server.add(replica_set("one", cpu="400m"))
    for name in ("b", "c", "d"):
        server.add(pod(name, "n2", cpu="400m", age=2 * DAY, owner=f"of-{name}"))
        server.add(replica_set(f"of-{name}", cpu="400m"))
    return server


@pytest.fixture
def run(cluster, rebalancer, tmp_path):
    configuration = tmp_path / "scheduler.yaml"
    configuration.write_text(PACKS)
    return lambda *options, wanted=PACKED: rebalancer.run(
        cluster, wanted, "--scheduler-config", configuration, *options
    )


def hold(server, name, expires, run="run-0"):
    """Put a mark of an earlier run on a node."""
    found = server.node(name)
    found["spec"]["taints"] = [*found["spec"].get("taints", []), OURS]
    found["metadata"]["annotations"] = {HOLD_KEY: HoldMark(run, expires).text()}


def taints(server, name):
    return server.node(name)["spec"].get("taints", [])


def note(server, name):
    return server.node(name)["metadata"].get("annotations", {}).get(HOLD_KEY)


def test_an_emptied_node_is_held_and_the_report_says_until_when(run, cluster):
    """No other node is; what others have set stays.  A dry run writes nothing and says what it would hold."""
    assert "would be held" in run("--hold", "15m", "--dry-run", "--output", "table").stdout
    assert {request.method for request in cluster.requests} == {"GET"}

    began = datetime.now(UTC)
    outcome = run("--hold", "15m")

    assert outcome.evicted() == ["default/a"]
    (entry,) = outcome.report["heldNodes"]
    until = datetime.fromisoformat(entry["until"])
    assert entry == {"name": "n1", "until": entry["until"], "byThisRun": True, "problem": None}
    assert timedelta(minutes=15) <= until - began < timedelta(minutes=20)
    assert taints(cluster, "n1") == [SPOT, OURS]
    assert f'"expires":"{entry["until"]}"' in note(cluster, "n1")
    assert [taints(cluster, each) for each in ("n2", "n3")] == [[], []]


def test_the_policy_says_it_too_and_the_option_has_the_last_word(run, cluster):
    outcome = run("--output", "table", "--hold", "2h", wanted={**PACKED, "hold": "15m"})

    _, table = outcome.stdout.split("Nodes kept empty\n")
    name, _, until, *by = table.splitlines()[0].split()
    assert (name, " ".join(by)) == ("n1", "by this run")
    assert datetime.fromisoformat(until) > datetime.now(UTC) + timedelta(hours=1)


def test_a_plan_says_it_and_apply_does_it(cluster, rebalancer, tmp_path):
    """The option is in the plan, since what is applied was made with it."""
    cluster.add({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "this-cluster"}})
    (tmp_path / "scheduler.yaml").write_text(PACKS)
    asked = ("--policy", rebalancer.policy(PACKED), "--scheduler-config", tmp_path / "scheduler.yaml")
    made = rebalancer.at(cluster, "plan", *asked, "--hold", "15m", "--out", tmp_path / "plan.json")
    assert made.exit_code == 0, made.stderr

    outcome = rebalancer.at(cluster, "apply", tmp_path / "plan.json", *asked, "--yes", "--output", "json")

    assert [each["name"] for each in outcome.report["heldNodes"]] == ["n1"]
    assert taints(cluster, "n1") == [SPOT, OURS]


@pytest.mark.parametrize("wanted", [PACKED, NOTHING_OLD])
def test_the_next_run_takes_it_off_after_its_expiry_and_not_before(run, cluster, wanted):
    """Whatever its policy is; the report names those that stay."""
    now = datetime.now(UTC)
    hold(cluster, "n1", now - timedelta(seconds=1))
    hold(cluster, "n3", now + timedelta(hours=1))

    outcome = run(wanted=wanted)

    assert outcome.exit_code == 0, outcome.stderr
    assert (taints(cluster, "n1"), note(cluster, "n1")) == ([SPOT], None)
    assert taints(cluster, "n3") == [OURS]
    assert [each["name"] for each in outcome.report["heldNodes"]] == ["n3"]


@pytest.mark.parametrize(
    "text", ['{"run": "run-0", "expires": "9999-12-31T23:59:59-14:00"}', '{"expires": "9999-12-31T23:59:59Z"}']
)
def test_a_note_that_cannot_be_read_holds_nothing_for_ever(run, cluster, text):
    """A time that UTC does not have, or no run."""
    hold(cluster, "n1", datetime.now(UTC))
    cluster.node("n1")["metadata"]["annotations"] = {HOLD_KEY: text}

    outcome = run(wanted=NOTHING_OLD)

    assert outcome.report["heldNodes"] == []
    assert (taints(cluster, "n1"), note(cluster, "n1")) == ([SPOT], None)


def test_a_node_that_cannot_be_held_is_said_and_stops_nothing(run, cluster):
    cluster.fail("PATCH", "/api/v1/nodes/n1", **FORBIDDEN)

    outcome = run("--hold", "15m")

    assert outcome.evicted() == ["default/a"]
    (entry,) = outcome.report["heldNodes"]
    assert "denied the request: no" in entry["problem"]
    assert outcome.exit_code == 0


def test_a_policy_that_empties_no_node_is_warned_of(run, cluster):
    """And needs no permission."""
    cluster.forbid("patch", "nodes")

    outcome = run("--hold", "15m", wanted=NOTHING_OLD)

    assert outcome.exit_code == 0
    assert any("selection: compaction" in each for each in outcome.report["warnings"])
