"""A signal ends a dry run as interrupted; SIGHUP counts as SIGTERM, and Events do not keep it long."""

import json
import signal
import subprocess
import sys
import threading

import pytest

from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import finish, wait_for

MEASURED = {
    "thresholds": {"MetricResource": 20},
    "targetThresholds": {"MetricResource": 50},
    "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": "up"}},
}
CODES = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 143)]


@pytest.fixture
def asked():
    return threading.Event()


@pytest.fixture
def silent(asked):
    """A Prometheus that does not answer while the test goes on."""
    release = threading.Event()

    def stall(_):
        asked.set()
        release.wait(120)
        return Reply(503, "too late")

    with FakePrometheus() as server:
        server.answers = stall
        yield server
        release.set()


@pytest.fixture
def measured(silent):
    """A policy whose strategy asks that Prometheus in the middle of its run."""
    source = {"source": "Prometheus", "prometheus": {"url": silent.url}}
    return policy(("LowNodeUtilization", MEASURED), balance=True, metricsProviders=[source])


@pytest.mark.parametrize(("number", "exit_code"), CODES)
def test_offline_in_the_middle_of_a_strategy(rebalancer, measured, asked, number, exit_code):
    """No report, no error of the strategy, and not exit code 0."""
    file = rebalancer.folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": two_nodes_with(*old_pods("a"))}))

    process = rebalancer.start("run", "--policy", rebalancer.policy(measured), "--snapshot", file, "--output", "json")
    wait_for(asked, process)
    process.send_signal(number)
    outcome = finish(process)

    assert (outcome.exit_code, outcome.stdout) == (exit_code, "")
    assert outcome.stderr == f"Error: stopped by {number.name} before anything was evicted\n"


def test_a_hangup_that_was_ignored_at_start_stays_ignored(server, rebalancer):
    """As under `nohup`: the run goes on and evicts."""
    for each in two_nodes_with(*old_pods("a")):
        server.add(each)
    reading = threading.Event()
    server.on("GET", "/api/v1/pods", lambda _: reading.set(), times=1)
    answer = server.stall("GET", "/api/v1/pods")
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    arguments = [str(each) for each in rebalancer.arguments(server, policy(OLD))]

    process = subprocess.Popen(
        [sys.executable, "-c", ignoring, "-m", "rebalancer", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    rebalancer.started.append(process)
    wait_for(reading, process)
    process.send_signal(signal.SIGHUP)
    answer.set()
    outcome = finish(process)

    assert outcome.exit_code == 0
    assert server.evicted == ["default/a"]
