"""`rebalancer mark --interval`: evaluation after evaluation, whatever goes wrong in one of them."""

import json
import signal

from tests.e2e.waiting import wait_for
from tests.fake_http import Reply
from tests.functional.marking import CALM, RULES, labels_on, loads, notes_on
from tests.functional.probing import Served, ask, samples
from tests.functional.program import finish
from tests.functional.test_loop import FAILED, SUCCEEDED


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
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert page.headers["Refresh"] == "30"
    assert "<p>2 nodes marked, evaluated 20" in pages[0].body
    assert "Values are in percent for a resource" in pages[0].body
    assert "<tr><td>n1</td><td>cpu</td><td>95</td>" in pages[0].body
    assert "<tr><td>rule cpu</td><td>known</td></tr>" in pages[1].body
    assert "<tr><td>dry run</td><td>no</td></tr>\n<tr><td>skipped</td><td>no</td></tr>" in pages[1].body
    assert ask(loop.port, "/readyz", **browser).body == "ok"
    assert samples(ask(loop.port, "/metrics").body)['rebalancer_marked_nodes{rule="cpu"}'] == 2
    assert loop.end().exit_code == 0
