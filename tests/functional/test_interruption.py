"""SIGTERM, SIGINT and the deadline: what is on its way is finished, nothing more is begun, the report is written."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from rebalancer.errors import ClusterError
from rebalancer.untrusted import exchange
from tests.attack.whims import Time
from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import arrival, finish, wait_for
from tests.functional.test_unmark import NOW, marked
from tests.functional.test_usage import by_usage, low

EVICTIONS = "*/eviction"
LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=9)


@pytest.fixture(autouse=True)
def a_terminal_that_may_hang_up():
    """Whoever starts the tests may ignore SIGHUP, as nohup does, and the program honours that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_silent_server_does_not_outlast_a_signal(three, rebalancer, monkeypatch):
    """What is on its way gets some seconds more, each Event and each look at a pod too: SIGKILL comes after 30 s."""
    monkeypatch.setattr(exchange, "HURRIED_SECONDS", 0.1)
    over = threading.Event()

    def silent(_):
        os.kill(os.getpid(), signal.SIGTERM)
        for method in ("GET", "POST", "PUT", "PATCH"):
            three.on(method, "*", lambda _: over.wait(60))
        over.wait(60)

    three.on("POST", EVICTIONS, silent, times=1)
    outcome = rebalancer.run(three, LIMITED, "--request-timeout", "1h")
    over.set()

    assert outcome.exit_code == 143
    assert [each["name"] for each in outcome.report["unknown"]] == ["a"]
    assert len(three.sent("POST", EVICTIONS)) == 1


def test_a_silent_server_does_not_outlast_a_signal_while_marks_of_others_come_off(three, rebalancer, monkeypatch):
    """That is in threads, before the run has begun to evict.  The signal may come before the second node is written."""
    monkeypatch.setattr(exchange, "HURRIED_SECONDS", 0.1)
    three.add(*(marked(name, "run-0", NOW - timedelta(hours=1)) for name in ("n3", "n4")))
    over, in_time = threading.Event(), []

    def silent(_):
        os.kill(os.getpid(), signal.SIGTERM)
        in_time.append(over.wait(30))

    three.on("PATCH", "*/nodes/*", silent)
    arguments = [each for each in rebalancer.arguments(three, policy(OLD, steering={})) if each != "--no-lease"]
    outcome = rebalancer(*arguments, "--request-timeout", "1h")
    holder = three.leases.holder()
    over.set()
    three.stop()

    assert (outcome.exit_code, holder, set(in_time)) == (143, "", {True})
    assert "stopped by SIGTERM before anything was evicted" in outcome.stderr


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
FAIL = ("--fail-on-error",)


@pytest.mark.parametrize(
    ("number", "environment", "options", "exit_code"),
    [
        (signal.SIGTERM, {}, (), 143),
        (signal.SIGINT, {}, (), 130),
        (signal.SIGHUP, {}, (), 143),
        (signal.SIGTERM, IN_POD, (), 0),
        (signal.SIGTERM, IN_POD, FAIL, 1),
    ],
)
def test_a_signal_in_the_middle_of_a_run(three, rebalancer, number, environment, options, exit_code):
    """The eviction on its way is finished and has its Event; no other is asked for; the report tells it all.

    A shell does not go on with the next command; in a pod a Job would start the run again, with fresh limits.
    """
    rebalancer = replace(rebalancer, environment=environment)
    three.on("POST", EVICTIONS, lambda _: signal.raise_signal(number), times=1)

    outcome = rebalancer.run(three, LIMITED, "--secure-port", "0", *options)

    assert outcome.exit_code == exit_code
    assert three.evicted == outcome.evicted() == ["default/a"]
    assert len(three.sent("POST", EVICTIONS)) == 1
    assert [event["regarding"]["name"] for event in three.events] == ["a"]
    (run,) = outcome.report["strategies"]
    assert run["error"] == f"stopped by {number.name}"
    assert f"stopped by {number.name}" in outcome.report["warnings"]


def test_a_signal_ends_the_wait_for_another_try(three, rebalancer):
    """Nothing was evicted: 143, in a pod too; the server is not asked again, and the wait is cut short."""
    rebalancer = replace(rebalancer, environment=IN_POD)
    asked = arrival(three, "POST", EVICTIONS)
    three.fail("POST", EVICTIONS, status=429, message="busy", headers={"Retry-After": "27"})

    process = rebalancer.start(*rebalancer.arguments(three, LIMITED), "--secure-port", "0")
    wait_for(asked, process)
    logged = process.stderr.readline()  # written as the wait begins
    process.send_signal(signal.SIGTERM)
    outcome = finish(process, within=20)

    assert "trying again in 2" in logged
    assert outcome.exit_code == 143
    assert set(outcome.failed()) == {"a"}
    assert len(three.sent("POST", EVICTIONS)) == 1


def test_a_signal_while_the_cluster_is_read(three, rebalancer):
    three.on("GET", "/api/v1/pods", lambda _: signal.raise_signal(signal.SIGTERM), times=1)
    three.stall("GET", "/api/v1/pods")

    outcome = rebalancer.run(three, LIMITED)

    assert (outcome.exit_code, outcome.stdout) == (143, "")
    assert outcome.stderr == "Error: stopped by SIGTERM before anything was evicted\n"
    assert three.sent("POST", "*") == []


def test_what_is_not_reached_by_the_deadline_is_deferred(three, rebalancer):
    """What was asked for in time is finished, however late the answer comes; each other pod of the plan is too late.

    With patience all that a dry run lists, and that was not asked for, is in the report with that reason.
    """
    time = Time()  # passes while the server evicts, and not where a machine is busy
    three.on("POST", EVICTIONS, lambda _: time.sleep(301), times=1)
    patient = policy(OLD, maxNoOfPodsToEvictTotal=9, trust={"waitReady": False})

    outcome = rebalancer.play(three, patient, time, deadline=300.0)

    assert outcome.exit_code == 0
    assert three.evicted == ["default/a"]
    assert [each["name"] for each in outcome.report["evictions"]] == ["a"]
    assert "the deadline of 300 s" in outcome.report["strategies"][0]["error"]
    deferred = {each["name"]: each["reason"] for each in outcome.report["refusals"] if each["by"] == "Deferred"}
    words = "deferred to the next run: the deadline of 300 s after the snapshot has passed"
    assert deferred == {"b": words, "c": words}
    assert outcome.report["strategies"][0]["refused"] == 2


def test_the_deadline_counts_from_the_snapshot(three, rebalancer):
    """A list that is read slowly makes an old picture: its time is part of it, and nothing is decided on it."""
    time = Time()
    three.on("GET", "/api/v1/pods", lambda _: time.sleep(301), times=1)

    with pytest.raises(ClusterError, match="the deadline of 300 s"):
        rebalancer.play(three, LIMITED, time, deadline=300.0)

    assert three.sent("POST", EVICTIONS) == []


def test_a_strategy_of_a_dry_run_is_interrupted(rebalancer):
    """While Prometheus does not answer: no report, no error of the strategy, and not exit code 0."""
    asked, release = threading.Event(), threading.Event()

    def stall(_):
        asked.set()
        release.wait(120)
        return Reply(503, "too late")

    with FakePrometheus() as prometheus:
        prometheus.answers = stall
        source = {"source": "Prometheus", "prometheus": {"url": prometheus.url}}
        asking = by_usage(
            low({"source": "Prometheus", "prometheus": {"query": "up"}}, "MetricResource"), providers=[source]
        )
        file = rebalancer.cluster(*two_nodes_with(*old_pods("a")))
        process = rebalancer.start("run", "--policy", rebalancer.policy(asking), "--snapshot", file)
        wait_for(asked, process)
        process.send_signal(signal.SIGTERM)
        outcome = finish(process)
        release.set()

    assert (outcome.exit_code, outcome.stdout) == (143, "")
    assert outcome.stderr == "Error: stopped by SIGTERM before anything was evicted\n"


def test_a_hangup_that_was_ignored_at_start_stays_ignored(three, rebalancer):
    """As under `nohup`: the run goes on and evicts."""
    reading = arrival(three, "GET", "/api/v1/pods")
    answer = three.stall("GET", "/api/v1/pods")

    arguments = rebalancer.arguments(three, LIMITED)
    process = rebalancer.start(*arguments, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(reading, process)
    process.send_signal(signal.SIGHUP)
    answer.set()
    outcome = finish(process)

    assert (outcome.exit_code, len(three.evicted)) == (0, 3)


#: Stops before the command line is imported, and says that it has come so far.
HELD = """
import builtins, sys, time
real = builtins.__import__
def held(name, *rest, **more):
    if name == "rebalancer.cli.main" and rest[2:3] and "main" in (rest[2] or ()):
        print("importing", flush=True)
        time.sleep(60)
    return real(name, *rest, **more)
from rebalancer.__main__ import main
builtins.__import__ = held
main()
"""
AS_FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


def can_be_first() -> bool:
    return bool(shutil.which("unshare")) and not subprocess.call([*AS_FIRST, "true"], stderr=subprocess.DEVNULL)


@pytest.mark.skipif(not can_be_first(), reason="being process 1 takes unshare and its namespaces")
def test_a_signal_during_the_imports_ends_process_one():
    """With the exit code of the signal, which a Job understands; without a handler it would be lost."""
    show = "import os; assert os.getpid() == 1\n" + HELD
    with subprocess.Popen([*AS_FIRST, sys.executable, "-c", show], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        first = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
        subprocess.run(["kill", f"-{signal.SIGTERM.value}", first.stdout.strip()], check=True)

        assert process.wait(60) == 128 + signal.SIGTERM
