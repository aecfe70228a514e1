"""`rebalancer mark` with a real Prometheus that scrapes what the kubelets of a real cluster serve."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.acts import by_node
from tests.e2e.builders import deployment
from tests.e2e.harness import ControlPlane
from tests.e2e.marker import AVOIDS, HIGH, LOW, NODES, Marking, Stage, staged
from tests.e2e.namespace import Namespace
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
