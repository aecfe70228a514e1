"""`rebalancer mark` marks nodes that are under pressure, once or in a loop, and touches nothing of others."""

import json
import signal
from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.waiting import wait_for
from tests.fake_http import Reply
from tests.functional.marking import CALM, LABEL, NODES, RULES, fill, labels_on, loads, marked, notes_on, policy_for
from tests.functional.objects import node, pod, policy
from tests.functional.probing import Served, ask, samples
from tests.functional.program import finish
from tests.functional.test_loop import FAILED, SUCCEEDED

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


@pytest.mark.parametrize(
    ("known", "said"),
    [(None, "Prometheus at"), ({"n1": 95.0, "n5": 10.0, "n6": 10.0}, "only 3 of 6 nodes have a sample")],
)
def test_without_samples_marks_stay_until_they_expire(mark, server, prometheus, known, said):
    """A Prometheus that does not answer, or knows half of the nodes; nothing new is set, and the exit code says so."""
    marked(server, "n5", "cpu")
    marked(server, "n6", "cpu", left=timedelta(seconds=-1))
    prometheus.answers = lambda _: Reply(400, "no")
    if known:
        loads(prometheus, known)

    outcome = mark()

    assert outcome.exit_code == 1
    assert set(labels_on(server)) == {"n5"}
    assert changes(outcome) == {"n5": "", "n6": "cleared"}
    assert said in outcome.report["rules"][0]["problem"]


def test_nodes_that_cannot_take_pods_take_no_part(mark, server, prometheus):
    cordoned = server.node("n1")
    server.add({**cordoned, "spec": {**cordoned["spec"], "unschedulable": True}})
    server.add(node("n2", ready=False))
    loads(prometheus, dict.fromkeys(NODES[:5], 99.0) | {"n6": 10.0})

    outcome = mark()

    assert outcome.report["takingPart"] == 4
    assert outcome.report["warnings"] == []  # the sample is of a node of the cluster, which takes no part
    assert len(labels_on(server)) == 2
    assert not {"n1", "n2"} & set(labels_on(server))


def test_a_resource_goes_by_the_policys_metrics_utilization(mark, server, prometheus):
    """In percent of what the node can give to pods; the warning about a node without a sample speaks of marks."""
    usage = {"source": "Prometheus", "prometheus": {"nodes": {"cpu": {"query": "cores", "unit": "cores"}}}}
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": usage}
    profile = {"name": "even", "pluginConfig": [{"name": "LowNodeUtilization", "args": args}]}
    mark.write({"rules": {"busy": {"resource": "cpu", "above": 80, "below": 70}}})
    loads(prometheus, {}, cores={**dict.fromkeys(NODES[:5], 1.0), "n1": 3.6})
    server.add(node("n5", ready=False))

    outcome = mark(policy=policy_for(prometheus.url, profiles=[profile]))

    assert outcome.exit_code == 0, outcome.stderr
    assert labels_on(server) == {"n1": "busy"}
    assert outcome.report["nodes"][0]["rules"][0]["value"] == 90
    unseen = "nodes without fresh usage get no new mark: n6 (no sample of cpu)"
    assert outcome.report["warnings"] == [f"rule busy: {unseen}"]


def test_another_that_marks_has_its_turn(mark, server, rebalancer):
    """One at a time, by a Lease of its own: runs that evict are not kept waiting."""
    outcome = rebalancer(*mark.arguments())

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
def test_marks_evict_nobody(server, rebalancer, label):
    """Strategies that count soft taints and preferred node affinity see no mark, on a cluster and in a file."""
    fill(server, "n1", "n2")
    marked(server, "n1", "cpu", label=label, taint="example.com/hot=cpu")
    key, _, value = label.partition("=")
    term = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 20, "preference": term}]}
    tolerations = [{"key": "spot", "operator": "Exists"}]
    server.add(pod("a", "n1", affinity={"nodeAffinity": preferred}, tolerations=tolerations))
    taints = ("RemovePodsViolatingNodeTaints", {"includePreferNoSchedule": True})
    wanted = policy(taints, ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [*preferred]}))

    live = rebalancer.run(server, wanted, "--dry-run")
    rebalancer.at(server, "snapshot", "--output", file := rebalancer.folder / "cluster.json")
    offline = rebalancer.offline(wanted, file)

    assert live.evicted() == offline.evicted() == []


class Loop(Served):
    def __init__(self, mark, interval="0.2s"):
        super().__init__(mark.program, *mark.arguments("--interval", interval, "-o", "json", "--no-lease"))

    def wait_evaluated(self, more=2, series=SUCCEEDED):
        self.wait_metric(series, self.metric(series) + more)


def test_marks_follow_the_load_until_a_signal_comes(mark, server, prometheus):
    """Set, kept without a write, and taken off; the end is exit code 0 and leaves marks as they are.

    Without Prometheus the loop is alive and goes on: marks stay, and readiness comes back with it.
    """
    loop = Loop(mark)
    wait_for(lambda: set(labels_on(server)) == {"n1", "n2"}, "two marks")
    loop.wait_evaluated()
    assert len(server.sent("PATCH", "*")) == 2

    prometheus.answers = lambda _: Reply(400, "no")
    loop.wait_evaluated(series=FAILED)
    found = ask(loop.port, "/readyz")
    assert (found.status, ask(loop.port, "/healthz").status) == (500, 200)
    assert "[-]sources failed: not all is known that is needed (the log says what)" in found.body
    assert samples(ask(loop.port, "/metrics").body)['rebalancer_source_errors_total{source="Prometheus"}'] >= 2
    assert set(labels_on(server)) == {"n1", "n2"}

    loads(prometheus, {**CALM, "n1": 95.0})
    wait_for(lambda: set(labels_on(server)) == {"n1"}, "one mark")
    loop.wait_evaluated(1)
    assert "[+]sources ok" in ask(loop.port, "/readyz?verbose").body
    outcome = loop.end()

    assert outcome.exit_code == 0
    assert set(notes_on(server)) == {"n1"}
    reports = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert len({report["run"] for report in reports}) == 1
    assert [each["change"] for each in reports[0]["nodes"]] == ["marked", "marked"]


def test_a_node_that_cannot_be_marked_puts_off_no_evaluation(mark, server):
    """It stays so for long; after ten intervals the marks of all others would have expired."""
    found = server.node("n1")
    server.add({**found, "metadata": {**found["metadata"], "labels": {"status": "retired"}}})
    mark.write({**RULES, "mark": {"label": "status=presure"}})
    loop = Loop(mark)
    loop.wait_evaluated(3, FAILED)

    outcome = loop.end()

    assert "node n1 is not as it should be" in outcome.stderr
    assert "failed cycles in a row" not in outcome.stderr


def test_rules_that_change_are_in_force_with_the_next_evaluation(mark, server):
    """And bad ones leave the last good ones in force, with a warning and without readiness."""
    loop = Loop(mark)
    wait_for(lambda: set(labels_on(server)) == {"n1", "n2"}, "two marks")

    mark.write({**RULES, "rules": {"cpu": {"query": "load", "above": 90, "below": 90}}})
    wait_for(lambda: set(labels_on(server)) == {"n1"}, "one mark")
    mark.write({"rules": {}})
    loop.wait_evaluated()

    assert "[-]policy failed: it cannot be used (the log says why)" in ask(loop.port, "/readyz").body
    assert set(labels_on(server)) == {"n1"}
    outcome = loop.end()
    assert outcome.stderr.count("the last good rules file stays in force") == 1


def test_a_signal_leaves_no_node_half_marked(mark, server):
    """What was begun is ended, what was not is left out; the exit code is that of the signal."""
    mark.write({**RULES, "mark": {"label": "status=presure", "taint": "example.com/hot"}})
    release = server.stall("PATCH", "/api/v1/nodes/n1")
    process = mark.program.start(*mark.arguments("--no-lease"))
    wait_for(lambda: server.sent("PATCH", "*/n1"), "a write that waits for its answer")

    process.send_signal(signal.SIGTERM)
    release.set()
    outcome = finish(process)

    assert outcome.exit_code == 143
    for name, note in notes_on(server).items():
        found = server.node(name)
        assert note["label"] == "status=presure"
        assert found["metadata"]["labels"]["status"] == "presure"
        assert found["spec"]["taints"][-1]["key"] == "example.com/hot"
    assert set(labels_on(server, "status")) == set(notes_on(server)) >= {"n1"}


def test_pages_say_which_nodes_are_marked_and_whether_all_is_well(mark):
    """As JSON, and as a table for a browser, by what the client accepts."""
    loop = Loop(mark, "2m")  # so that no machine is too busy for it to be ready
    loop.wait_metric(SUCCEEDED, 1)
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

    nodes, status = (json.loads(ask(loop.port, path).body) for path in ("/nodes", "/status"))
    pages = [ask(loop.port, path, **browser) for path in ("/nodes", "/status")]

    assert nodes["count"] == 2
    assert [each["name"] for each in nodes["nodes"]] == ["n1", "n2"]
    assert nodes["nodes"][0]["rules"][0].keys() == {"name", "since", "until", "value"}
    assert (status["healthy"], status["ready"], status["evaluation"]["rules"]) == (True, True, {"cpu": ""})
    assert status["evaluation"]["takingPart"] == 6
    for page in pages:
        assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        sorts = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
        assert page.headers["Content-Security-Policy"] == sorts
        assert page.headers["Refresh"] == "30"
    assert "<dd>2 nodes, evaluated 20" in pages[0].body
    assert "<dd>in percent for a resource" in pages[0].body
    assert "<tr><td>n1</td><td>cpu</td><td>95</td>" in pages[0].body
    assert "<tr><td>rule cpu</td><td>known</td></tr>" in pages[1].body
    assert "<tr><td>dry run</td><td>no</td></tr>\n<tr><td>skipped</td><td>no</td></tr>" in pages[1].body
    assert ask(loop.port, "/readyz", **browser).body == "ok"
    assert samples(ask(loop.port, "/metrics").body)['rebalancer_marked_nodes{rule="cpu"}'] == 2
    assert loop.end().exit_code == 0
