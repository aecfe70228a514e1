"""`rebalancer mark` marks nodes that are under pressure, and touches nothing of others."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.fake_http import Reply
from tests.functional.marking import (
    CALM,
    LABEL,
    NODES,
    RULES,
    fill,
    labels_on,
    loads,
    marked,
    notes_on,
    policy_for,
)
from tests.functional.objects import node, pod, policy

SPOT = {"key": "spot", "effect": "PreferNoSchedule"}


def changes(outcome):
    return {each["name"]: each["change"] for each in outcome.report["nodes"]}


def test_hot_nodes_are_marked_and_cleared_ones_are_as_before(mark, server, prometheus):
    """The annotation says which run, which rules, since when and until when; a third evaluation writes nothing."""
    mark.write({**RULES, "mark": {"label": LABEL, "taint": "example.com/hot"}})
    before = {name: server.node(name) for name in NODES}
    began = datetime.now(UTC).replace(microsecond=0)
    first = mark()

    assert (first.exit_code, changes(first)) == (0, {"n1": "marked", "n2": "marked"}), first.stderr
    assert labels_on(server) == {"n1": "cpu", "n2": "cpu"}
    note = notes_on(server)["n1"]
    times = {name: datetime.fromisoformat(note["rules"]["cpu"][name]) for name in ("since", "until")}
    assert (note["run"], note["rules"]["cpu"]["value"]) == (first.report["run"], 95)
    assert times["since"] >= began
    assert times["until"] - times["since"] == timedelta(minutes=15)
    assert server.node("n1")["metadata"]["labels"] == {**before["n1"]["metadata"]["labels"], LABEL: "cpu"}
    taint = {"key": "example.com/hot", "value": "cpu", "effect": "PreferNoSchedule"}
    assert server.node("n1")["spec"]["taints"] == [SPOT, taint]

    loads(prometheus, {**CALM, "n1": 75.0})
    second = mark()

    assert changes(second) == {"n1": "", "n2": "cleared"}
    assert notes_on(server) == {"n1": note}
    assert {name: server.node(name) for name in NODES[1:]} == {name: before[name] for name in NODES[1:]}
    assert (mark().exit_code, len(server.sent("PATCH", "*"))) == (0, 3)


def test_a_label_of_others_stays_as_it_is(mark, server):
    """The node is not marked, and the report says why; the others are."""
    found = server.node("n1")
    server.add({**found, "metadata": {**found["metadata"], "labels": {"status": "retired"}}})
    mark.write({**RULES, "mark": {"label": "status=presure"}})

    planned, done = mark("--dry-run"), mark()

    for outcome in (planned, done):
        (problem,) = [each["problem"] for each in outcome.report["nodes"] if each["problem"]]
        assert "node n1 has the label status=retired, which is not ours" in problem
    assert done.exit_code == 1
    assert labels_on(server, "status") == {"n1": "retired", "n2": "presure"}
    assert set(notes_on(server)) == {"n2"}


@pytest.mark.parametrize("options", [(), ("--interval", "5m")])
def test_without_the_permission_nothing_is_done(mark, server, options):
    """It is asked for first; the message has the rule to add."""
    server.forbid("patch", "nodes")

    outcome = mark(*options)

    assert outcome.exit_code == 3
    assert "no permission to patch nodes. No node was changed." in outcome.stderr
    assert "verbs: [get, patch]" in outcome.stderr
    assert {request.path.rpartition("/")[2] for request in server.requests} == {"selfsubjectaccessreviews"}


@pytest.mark.parametrize("answer", ["none", "half"])
def test_without_samples_marks_stay_until_they_expire(mark, server, prometheus, answer):
    """A Prometheus that does not answer, or knows half of the nodes; nothing new is set, and the exit code says so."""
    marked(server, "n5", "cpu")
    marked(server, "n6", "cpu", left=timedelta(seconds=-1))
    if answer == "none":
        prometheus.answers = lambda _: Reply(400, "no")
    else:
        loads(prometheus, {"n1": 95.0, "n5": 10.0, "n6": 10.0})

    outcome = mark()

    assert outcome.exit_code == 1
    assert set(labels_on(server)) == {"n5"}
    assert changes(outcome) == {"n5": "", "n6": "cleared"}
    said = "Prometheus at" if answer == "none" else "only 3 of 6 nodes have a sample"
    assert said in outcome.report["rules"][0]["problem"]


def test_nodes_that_cannot_take_pods_take_no_part(mark, server, prometheus):
    cordoned = server.node("n1")
    server.add({**cordoned, "spec": {**cordoned["spec"], "unschedulable": True}})
    server.add(node("n2", ready=False))
    loads(prometheus, dict.fromkeys(NODES[:5], 99.0) | {"n6": 10.0})

    outcome = mark()

    assert outcome.report["takingPart"] == 4
    assert len(labels_on(server)) == 2
    assert not {"n1", "n2"} & set(labels_on(server))


def test_a_resource_goes_by_the_policys_metrics_utilization(mark, server, prometheus):
    """In percent of what the node can give to pods."""
    usage = {"source": "Prometheus", "prometheus": {"nodes": {"cpu": {"query": "cores", "unit": "cores"}}}}
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": usage}
    profile = {"name": "even", "pluginConfig": [{"name": "LowNodeUtilization", "args": args}]}
    mark.write({"rules": {"busy": {"resource": "cpu", "above": 80, "below": 70}}})
    loads(prometheus, {}, cores={**dict.fromkeys(NODES, 1.0), "n1": 3.6})

    outcome = mark(policy=policy_for(prometheus.url, profiles=[profile]))

    assert outcome.exit_code == 0, outcome.stderr
    assert labels_on(server) == {"n1": "busy"}
    assert outcome.report["nodes"][0]["rules"][0]["value"] == 90


def test_another_that_marks_has_its_turn(mark, server, rebalancer):
    """One at a time, by a Lease of its own: runs that evict are not kept waiting."""
    quick = ("--leader-elect-lease-duration", "4s", "--leader-elect-renew-deadline", "3s")
    outcome = rebalancer(*mark.arguments("-o", "json", *quick, "--leader-elect-retry-period", "1s"))

    assert outcome.exit_code == 0, outcome.stderr
    leases = {request.path.rpartition("/")[2] for request in server.requests if "leases" in request.path}
    assert leases == {"rebalancer-mark"}


def test_a_dry_run_changes_nothing(mark, server, rebalancer):
    server.forbid("patch", "nodes")

    outcome = mark("--dry-run")
    lines = rebalancer(*mark.arguments("--no-lease", "--dry-run")).stdout.splitlines()

    assert (outcome.exit_code, outcome.report["dryRun"]) == (0, True)
    assert changes(outcome) == {"n1": "marked", "n2": "marked"}
    assert {request.method for request in server.requests} == {"GET"}
    assert lines[0] == "2 of 6 nodes would be marked"
    assert lines[1].split() == ["node", "rule", "value", "since", "until", "change"]
    assert [line.split()[::5] for line in lines[2:]] == [["n1", "marked"], ["n2", "marked"]]


GOOD = f"rules: {json.dumps(RULES['rules'])}"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("rules: {cpu: {query: up, above: 1}}", "line 1, rules.cpu: 'below' is missing"),
        (f"{GOOD}\nexpiry: 20s", "expiry is 20 s in the rules, and has to be three times --interval (10 s)"),
        (f"{GOOD}\nmark: {{taint: kube-rebalancer/avoid}}", "kube-rebalancer/avoid is a key of steering"),
    ],
)
def test_rules_that_cannot_be_used(mark, server, rules, said):
    mark.rules.write_text(rules)

    outcome = mark("--interval", "10s")

    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert server.requests == []


@pytest.mark.parametrize("label", [f"{LABEL}=cpu", "status=presure"])
def test_marks_evict_nobody(server, rebalancer, label, tmp_path):
    """Strategies that count soft taints and preferred node affinity see no mark, on a cluster and in a file."""
    fill(server, "n1", "n2")
    marked(server, "n1", "cpu", label=label, taint="example.com/hot=cpu")
    key, _, value = label.partition("=")
    term = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 20, "preference": term}]}
    server.add(
        pod("a", "n1", affinity={"nodeAffinity": preferred}, tolerations=[{"key": "spot", "operator": "Exists"}])
    )
    taints = ("RemovePodsViolatingNodeTaints", {"includePreferNoSchedule": True})
    affinity = (
        "RemovePodsViolatingNodeAffinity",
        {"nodeAffinityType": ["preferredDuringSchedulingIgnoredDuringExecution"]},
    )
    wanted = policy(taints, affinity)

    live = rebalancer.run(server, wanted, "--dry-run")
    rebalancer("snapshot", "--kubeconfig", server.kubeconfig(tmp_path), "--output", tmp_path / "cluster.json")
    offline = rebalancer(
        "run", "--policy", rebalancer.policy(wanted), "--snapshot", tmp_path / "cluster.json", "-o", "json"
    )

    assert live.evicted() == offline.evicted() == []
