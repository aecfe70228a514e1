"""A loop: cycle after cycle, whatever goes wrong in one of them, watched by probes and a scraper."""

import json
import re
import signal
from functools import partial

from tests.browser import CHROMIUM, evaluated
from tests.e2e.waiting import wait_for
from tests.functional.objects import OLD, ONE, policy
from tests.functional.probing import Served, ask, samples

NOTHING = policy(OLD, maxNoOfPodsToEvictTotal=0)
#: Seconds from start to start.
INTERVAL = 0.2


class Loop(Served):
    def __init__(self, program, server, document, *options, in_turn=False, ask=ask):
        given = [each for each in program.arguments(server, document) if each != "--no-lease" or not in_turn]
        super().__init__(program, *given, "--descheduling-interval", f"{INTERVAL}s", *options, ask=ask)

    def wait_ready(self):
        """Wait until it would be ready on a machine where no cycle is later than three of these short intervals."""
        wait_for(lambda: not self.wrong() - {"[-]cycles"}, "a loop that is ready")

    def wrong(self):
        return {line.partition(" ")[0] for line in ask(self.port, "/readyz").body.splitlines() if line[:3] == "[-]"}


SUCCEEDED = 'rebalancer_cycles_total{dry_run="false",result="succeeded"}'
FAILED = 'rebalancer_cycles_total{dry_run="false",result="failed"}'


def test_a_loop_runs_until_it_is_stopped_and_that_is_no_failure(three, rebalancer):
    """Each cycle reads the cluster anew, has its limits to itself and a report of its own; the end is exit code 0.

    A cycle that fails is followed by another.  Meanwhile probes answer, and what the descheduler's dashboards ask for
    is there, under its names and labels.
    """
    three.fail("GET", "/api/v1/pods", status=400, times=2)
    loop = Loop(rebalancer, three, ONE)
    loop.wait_metric(FAILED, 2)
    assert ask(loop.port, "/healthz").status == 200
    loop.wait_metric(SUCCEEDED, 4)

    found = samples(ask(loop.port, "/metrics").body)

    labels = '{namespace="default",node="n1",profile="tidy",result="success",strategy="PodLifeTime"}'
    assert found[f"descheduler_pods_evicted_total{labels}"] == 3
    assert found[f"descheduler_pods_evicted{labels}"] == 3
    assert found["descheduler_loop_duration_seconds_count"] >= 4
    assert found['descheduler_strategy_duration_seconds_count{profile="tidy",strategy="PodLifeTime"}'] >= 4
    assert found['rebalancer_api_requests_total{code="201",verb="create"}'] >= 3
    assert found['rebalancer_last_successful_cycle_timestamp_seconds{dry_run="false"}'] > 1e9
    assert [ask(loop.port, path).status for path in ("/healthz", "/healthz/Descheduler", "/livez")] == [200] * 3
    loop.wait_ready()
    assert ask(loop.port, "/healthz?verbose").body == "[+]ping ok\n[+]cycle ok\nhealthz check passed\n"

    outcome = loop.end(signal.SIGINT)

    assert outcome.exit_code == 0
    assert "failed cycles in a row: 2" in outcome.stderr
    assert three.evicted == ["default/a", "default/b", "default/c"]
    reports = [json.loads(each) for each in outcome.stdout.replace("\n}\n{", "\n}\0{").split("\0")]
    assert [len(each["evictions"]) for each in reports[:4]] == [1, 1, 1, 0]


SEARCH = "s = document.getElementById('search'); s.value = 't/b'; s.dispatchEvent(new Event('input'))"
SHOWN = (
    "[...document.querySelectorAll('#moves tbody tr')]"
    ".filter(row => !row.hidden).map(row => row.cells[0].textContent.trim())"
)


def test_a_dry_run_in_a_loop_is_counted_apart(three, rebalancer):
    """The descheduler counts it like evictions.  Nothing is written to the cluster, not even of a bad policy.

    Its last cycle is shown on request: an index that links what there is, and the report in full, here over plain HTTP.
    The report's script may run in a browser, by its hash: the moves can be searched.
    """
    look = partial(ask, secure=False)
    loop = Loop(rebalancer, three, policy(OLD), "--insecure-http", "--dry-run", ask=look)
    loop.wait_metric('rebalancer_cycles_total{dry_run="true",result="succeeded"}', 2)

    found = samples(look(loop.port, "/metrics").body)
    index, plain = look(loop.port, "/", Accept="text/html"), look(loop.port, "/").body
    reports = [json.loads(look(loop.port, path).body)["kind"] for path in ("/report", "/status")]
    shown = CHROMIUM and evaluated(f"http://127.0.0.1:{loop.port}/report", ["document.title", SEARCH, SHOWN])
    swap(rebalancer.folder / "policy.yaml", "profiles: [")
    loop.wait_metric("rebalancer_policy_reload_failures_total", 1)
    three.fail("GET", "/api/v1/pods", status=400)
    loop.wait_metric('rebalancer_cycles_total{dry_run="true",result="failed"}', 2)
    failed = look(loop.port, "/").body
    outcome = loop.end()

    assert not [series for series in found if series.startswith("descheduler_pods_evicted")]
    series = 'rebalancer_evictions_total{dry_run="true",profile="tidy",result="granted",strategy="PodLifeTime"}'
    assert found[series] >= 2
    assert (index.status, index.headers["Refresh"]) == (200, "30")
    for path in ("/healthz", "/livez", "/metrics", "/readyz", "/report", "/status"):
        assert f'<a href="{path}">' in index.body
    assert re.search(r"^last cycle, 20[-\dT:]{17}Z: 3 pods would be evicted", plain, re.MULTILINE)
    assert "next cycle: 20" in plain
    assert ("last cycle: failed: the API server answers 400" in failed, "would be evicted" in failed) == (True, False)
    assert reports == ["Report", "Report"]
    assert not shown or (shown[0].startswith("rebalancer: Dry run"), shown[2]) == (True, ["default/b"])
    assert outcome.exit_code == 0
    assert "the last good policy stays in force" in outcome.stderr
    assert {request.method for request in three.requests} == {"GET"}


def swap(path, document):
    """Replace a file as the kubelet does in a mounted ConfigMap: the name is a link, and the link is replaced."""
    fresh = path.with_name("fresh.yaml")
    content = path.with_name(f"content-{len(list(path.parent.iterdir()))}.yaml")
    content.write_text(document)
    fresh.symlink_to(content)
    fresh.replace(path)


def test_a_policy_that_changes_is_in_force_with_the_next_cycle(three, rebalancer):
    """By content; nobody has to restart anything.

    A bad one leaves the old one in force: a warning once, a metric, an Event, not ready, till a good one comes.
    """
    loop = Loop(rebalancer, three, NOTHING)
    loop.wait_metric("rebalancer_policy_valid", 1)

    swap(rebalancer.folder / "policy.yaml", "profiles: [")
    loop.wait_metric("rebalancer_policy_reload_failures_total", 1)
    assert loop.metric("rebalancer_policy_valid") == 0
    loop.wait_metric(SUCCEEDED, loop.metric(SUCCEEDED) + 2)
    not_ready = ask(loop.port, "/readyz")
    assert (not_ready.status, "[-]policy failed: " in not_ready.body, three.evicted) == (500, True, [])

    swap(rebalancer.folder / "policy.yaml", json.dumps(ONE))
    wait_for(lambda: three.evicted, "an eviction by the new policy")
    loop.wait_metric("rebalancer_policy_valid", 1)
    loop.wait_ready()

    outcome = loop.end()
    assert outcome.exit_code == 0
    assert outcome.stderr.count("the last good policy stays in force") == 1
    assert "has changed: the new one is in force" in outcome.stderr
    assert [event["reason"] for event in three.events].count("PolicyInvalid") == 1
