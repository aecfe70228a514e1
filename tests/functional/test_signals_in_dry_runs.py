"""A signal ends a dry run as interrupted; SIGHUP counts as SIGTERM, and Events do not keep it long."""

import json
import signal
import threading

import pytest

from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import arrival, finish, wait_for


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 143)])
def test_offline_in_the_middle_of_a_strategy(rebalancer, number, exit_code):
    """While Prometheus does not answer: no report, no error of the strategy, and not exit code 0."""
    asked, release = threading.Event(), threading.Event()

    def stall(_):
        asked.set()
        release.wait(120)
        return Reply(503, "too late")

    file = rebalancer.folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": two_nodes_with(*old_pods("a"))}))
    with FakePrometheus() as prometheus:
        prometheus.answers = stall
        usage = {"source": "Prometheus", "prometheus": {"query": "up"}}
        args = {"thresholds": {"MetricResource": 20}, "targetThresholds": {"MetricResource": 50}}
        source = {"source": "Prometheus", "prometheus": {"url": prometheus.url}}
        low = ("LowNodeUtilization", args | {"metricsUtilization": usage})
        asking = rebalancer.policy(policy(low, balance=True, metricsProviders=[source]))
        process = rebalancer.start("run", "--policy", asking, "--snapshot", file, "--output", "json")
        wait_for(asked, process)
        process.send_signal(number)
        outcome = finish(process)
        release.set()

    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    assert outcome.stderr == f"Error: stopped by {number.name} before anything was evicted\n"


def test_a_hangup_that_was_ignored_at_start_stays_ignored(server, rebalancer):
    """As under `nohup`: the run goes on and evicts."""
    server.add(*two_nodes_with(*old_pods("a")))
    reading = arrival(server, "GET", "/api/v1/pods")
    answer = server.stall("GET", "/api/v1/pods")

    arguments = rebalancer.arguments(server, policy(OLD))
    process = rebalancer.start(*arguments, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(reading, process)
    process.send_signal(signal.SIGHUP)
    answer.set()
    outcome = finish(process)

    assert outcome.exit_code == 0
    assert server.evicted == ["default/a"]
