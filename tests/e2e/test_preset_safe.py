"""The preset that the chart installs unless told otherwise, on a cluster that has nothing wrong but a busy node."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from rebalancer.cluster.resources import parse_milli_quantity
from tests.e2e.acts import by_node, cordon, names, uids
from tests.e2e.api import Object
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.figures import figures, wait_round
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program

#: The preset; nodes are seconds old here, and cycles follow each other.
PATIENCE: Object = {"youngNodes": "0s", "backOff": {"first": "0s"}, "undone": "0s", "movePrice": 0}
SAFE: Object = yaml.safe_load(Path("policies/presets/safe.yaml").read_text()) | {"trust": PATIENCE}
LONG_AGO = "2020-01-01T00:00:00Z"


@pytest.fixture
def lopsided(metrics: ControlPlane, namespace: Namespace) -> Namespace:
    """Two nodes of ten cores; on one of them eight old pods that request 1 % and use 9.3 % each."""
    namespace.create(node("a", cpu="10"), node("b", cpu="10"), daemonset("agent", usage="10m"))
    cordon(metrics.api, "b")
    namespace.create(deployment("crowded", replicas=8, cpu="100m", usage="930m"))
    namespace.wait_ready(8, "crowded")
    cordon(metrics.api, "b", on=False)
    for pod in namespace.wait_ready(10):
        namespace.set_pod_status(pod["metadata"]["name"], {"startTime": LONG_AGO})
    return namespace


def wait_measured(metrics: ControlPlane, namespace: Namespace, **millicores: int) -> None:
    """Wait until metrics-server has figures of all pods, and about these of the nodes."""

    def measured(found: Mapping[str, Object]) -> bool:
        used = {name: parse_milli_quantity(found[name]["usage"]["cpu"]) for name in millicores}
        close = all(abs(used[name] - wanted) < 100 for name, wanted in millicores.items())
        return close and names(namespace.pods()) <= figures(metrics.api, "PodMetrics", namespace.name).keys()

    wait_round(metrics.api, *millicores, good=measured)


def test_it_relieves_a_busy_node(metrics: ControlPlane, lopsided: Namespace, program: Program) -> None:
    """One pod moves by what nodes really use, and no more once all is measured again: the node is below its target."""
    before = lopsided.pods("crowded")
    wait_measured(metrics, lopsided, a=7450, b=10)

    outcome = program.run(SAFE, "--strict")

    after = lopsided.wait_ready(8, "crowded")
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.errors() == {}
    (moved,) = outcome.report["evictions"]
    assert (moved["strategy"], moved["node"]) == ("LowNodeUtilization", "a")
    assert moved["reason"].startswith("a at cpu 7")
    assert uids(before) - uids(after) == {moved["uid"]}
    assert (by_node(before), by_node(after)) == ({"a": 8}, {"a": 7, "b": 1})
    wait_measured(metrics, lopsided, a=6520, b=940)
    assert program.run(SAFE, "--strict").evicted() == []
