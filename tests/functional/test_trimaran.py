"""Whole runs on clusters whose scheduler knows load: the report foresees where replacements go."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fake_servers import FakeLoadWatcher
from tests.functional.objects import node, node_usage, pod, pod_usage, policy

EXAMPLE = Path(__file__).parents[2] / "examples/trimaran-scheduler.yaml"
WATCHED = {"n1": {"CPU": 95}, "n2": {"CPU": 35}, "n3": {"CPU": 10}}


def asked(source, *providers):
    """Moves what brings n1 below 60 %, to nodes below 45 %."""
    usage = {"source": source, "selection": "relief", "minFreshNodes": 0}
    args = {"thresholds": {"cpu": 45}, "targetThresholds": {"cpu": 60}, "metricsUtilization": usage}
    return policy(("LowNodeUtilization", args), balance=True, metricsProviders=[*providers])


def busy_cluster(scheduler):
    """n1 is busy with `a` and `b`; on n3, which idles, much is requested, and on n2 nothing."""
    objects = [node("n1"), node("n2"), node("n3")]
    objects += [pod("rest", "n1", owner="rest", cpu="1m"), pod("big", "n3", owner="big", cpu="2500m")]
    objects += [pod(name, "n1", owner=name, cpu="400m", schedulerName=scheduler) for name in ("a", "b")]
    objects += [node_usage(f"n{number}", cpu) for number, cpu in enumerate(("3.8", "1.4", "400m"), 1)]
    uses = (("a", "800m"), ("b", "800m"), ("rest", "2"), ("big", "1m"))
    return [*objects, *(pod_usage(name, cpu) for name, cpu in uses)]


@pytest.fixture
def plan(rebalancer):
    def run(policy):
        now, file = datetime.now(UTC).isoformat(), rebalancer.cluster(*busy_cluster("trimaran"))
        outcome = rebalancer.offline(policy, file, "--now", now, "--scheduler-config", EXAMPLE)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.report

    return run


@pytest.fixture
def load_watcher():
    """With figures that are a quarter of a minute old."""
    watched = {host: {**each, "Memory": 5} for host, each in WATCHED.items()}
    with FakeLoadWatcher(watched, datetime.now(UTC) - timedelta(seconds=15)) as server:
        yield {"source": "LoadWatcher", "loadWatcher": {"url": server.url}}


def landed(report):
    return [each["destination"]["nodes"] for each in report["evictions"]]


def told(report):
    return [each for each in report["warnings"] if "goes by the real usage" in each]


def test_replacements_go_where_the_target_is_not_reached(plan, load_watcher):
    """Both to n3: with what they are expected to use it has 25 %, then 40 %; n2 would have 50 %."""
    report = plan(asked("LoadWatcher", load_watcher, {"source": "KubernetesMetrics"}))

    assert landed(report) == [["n3"], ["n3"]]
    assert told(report) == []


def test_a_scheduler_that_asks_load_watcher_is_unknown_without_it(plan):
    """One warning for all pods, with what is missing; they stay."""
    report = plan(asked("KubernetesMetrics", {"source": "KubernetesMetrics"}))

    assert report["evictions"] == []
    (warning,) = told(report)
    assert "pods stay since it is not known where they would land: TargetLoadPacking goes by the real" in warning
    assert "the scheduler asks LoadWatcher: add `- source: LoadWatcher` to the policy's" in warning
