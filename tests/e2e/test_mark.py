"""`rebalancer mark` with a real Prometheus that scrapes what the kubelets of a real cluster serve."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rebalancer.kube.pressure_marks import ANNOTATION
from tests.e2e.acts import by_node, set_labels
from tests.e2e.api import Object
from tests.e2e.builders import deployment
from tests.e2e.harness import ControlPlane
from tests.e2e.marker import AVOIDS, HIGH, LABEL, LOW, NODES, Marking, Stage, staged
from tests.e2e.namespace import Namespace
from tests.e2e.program import Running
from tests.e2e.waiting import wait_for
from tests.real_prometheus import needed

pytestmark = needed

HOT = ("a", "b", "c")


@pytest.fixture
def stage(controlplane: ControlPlane, namespace: Namespace, tmp_path: Path) -> Iterator[Stage]:
    """Prometheus has seen all nodes, and none is under pressure."""
    with staged(controlplane, namespace, tmp_path) as made:
        yield made


def evaluated_since(loop: Marking, moment: datetime) -> list[set[str]]:
    """The marked nodes of the next two evaluations that began after a moment."""
    loop.wait_evaluated(4)
    later = [each for each in loop.reports() if datetime.fromisoformat(each["now"]) > moment]
    return [{node["name"] for node in each["nodes"] if node["rules"]} for each in later[:2]]


def test_nodes_are_marked_while_they_are_under_pressure(stage: Stage) -> None:
    """Within two evaluations, and cleared within two; meanwhile pods that prefer other nodes go there."""
    with stage.loop() as loop:
        stage.load(*HOT, usage=HIGH)
        stage.wait_measured(HOT)
        assert set(HOT) in evaluated_since(loop, datetime.now(UTC))
        assert stage.marked() == set(HOT)

        stage.namespace.create(deployment("web", replicas=3, affinity=AVOIDS))
        web = stage.namespace.wait_ready(3, "web")
        assert set(by_node(web)) == set(NODES) - set(HOT)

        stage.load(*HOT, usage=LOW)
        stage.wait_measured(())
        assert set() in evaluated_since(loop, datetime.now(UTC))
        assert stage.marked() == set()

        loop.send(signal.SIGTERM)
        wait_for(lambda: not loop.runs(), "the end of the loop")


def assert_marks_outlived_it(reports: list[Object]) -> None:
    """After the last evaluation with Prometheus, those are marked whose time was not over."""
    known = [each for each in reports if not each["rules"][0]["problem"]]
    until = {node["name"]: node["rules"][0]["until"] for node in known[-1]["nodes"] if node["rules"]}
    assert set(until) == set(HOT)
    for each in reports[reports.index(known[-1]) + 1 :]:
        marked = {node["name"] for node in each["nodes"] if node["rules"]}
        assert marked == {name for name, time in until.items() if time > each["now"]}


def test_marks_without_prometheus_and_without_the_loop(stage: Stage) -> None:
    """They outlive Prometheus until they expire, and a loop that is killed until the next one sees to them."""
    stage.load(*HOT, usage=HIGH)
    stage.wait_measured(HOT)
    with stage.loop() as loop:
        stage.wait_marked(*HOT)
        stage.prometheus.__exit__()
        wait_for(lambda: loop.reports()[-1]["rules"][0]["problem"], "an evaluation without Prometheus")
        stage.wait_marked()
        assert_marks_outlived_it(loop.reports())
        stage.prometheus.__enter__()
        stage.wait_marked(*HOT)

        loop.send(signal.SIGKILL)
        wait_for(lambda: not loop.runs(), "the end of the loop")
    assert stage.marked() == set(HOT)
    stage.load(*HOT[:2], usage=LOW)
    stage.wait_measured(HOT[2:])
    with stage.loop():
        stage.wait_marked(*HOT[2:])


def test_pods_land_where_all_nodes_are_marked_and_nothing_is_left_afterwards(stage: Stage) -> None:
    """It is a preference; `unmark --all` takes off what a loop has left, and nothing of others."""
    stage.load(*HOT, usage=HIGH)
    stage.wait_measured(HOT)
    with stage.loop():
        stage.wait_marked(*HOT)
    for name in NODES:
        set_labels(stage.controlplane.api, name, **{LABEL[0]: LABEL[1], "team": "mine"})
    stage.namespace.create(deployment("web", replicas=3, affinity=AVOIDS))
    assert len(stage.namespace.wait_ready(3, "web")) == 3

    command = ["unmark", "--all", "--mark", "=".join(LABEL), "--kubeconfig", str(stage.controlplane.kubeconfig)]
    with Running([*stage.program, *command], "") as running:
        wait_for(lambda: not running.runs(), "the end of unmark")

    assert stage.marked() == set()
    nodes = [each["metadata"] for each in stage.controlplane.api.list("Node")]
    assert not any(ANNOTATION in each.get("annotations", {}) for each in nodes)
    assert all(each["labels"]["team"] == "mine" for each in nodes)
