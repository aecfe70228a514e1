"""What metrics.k8s.io writes, and what becomes of it."""

import json
from datetime import UTC, datetime

import pytest

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.kube.wire.collect import Collection, add_document

NOON = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def collected(*objects):
    collection = Collection()
    add_document(collection, json.dumps({"kind": "List", "items": objects}).encode())
    return collection.snapshot(NOON)


def of_pod(*containers, **fields):
    listed = [{"name": str(number), "usage": usage} for number, usage in enumerate(containers)]
    return {"kind": "PodMetrics", "metadata": {"name": "a", "namespace": "x"}, "containers": listed, **fields}


def test_a_nodes_usage_is_in_millicores_and_bytes():
    """Rounded up, as quantities are; a negative value is not a measurement; the time has its zone."""
    usage = {"cpu": "1500000001n", "memory": "2Ki", "ephemeral-storage": "-1"}
    metrics = {"kind": "NodeMetrics", "metadata": {"name": "n1"}, "timestamp": "2026-01-15T12:00:00Z", "usage": usage}

    assert collected(metrics).node_metrics == (NodeMetrics("n1", {"cpu": 1501, "memory": 2048}, NOON),)


@pytest.mark.parametrize(
    ("containers", "usage"),
    [
        ([{"cpu": "1", "memory": "1Ki"}, {"cpu": "500m", "memory": "1"}], {"cpu": 1500, "memory": 1025}),
        ([{"cpu": "1", "memory": "1Ki"}, {"cpu": "500m"}], {"cpu": 1500}),
        ([{"cpu": "1"}, {"memory": "1"}], {}),
        ([{"cpu": "1"}, None], {}),
        ([{"cpu": "-1m", "memory": "1Ki"}, {"cpu": "500m", "memory": "1"}], {"memory": 1025}),
        ([], {}),
    ],
)
def test_a_pods_usage_is_the_sum_over_its_containers(containers, usage):
    """Of what all of them have; a sum that lacks a container would be too low."""
    assert collected(of_pod(*containers)).pod_metrics == (PodMetrics("x", "a", usage),)


@pytest.mark.parametrize("fields", [{"containers": None}, {"timestamp": None}, {"window": "20s", "more": 1}])
def test_what_is_absent_is_no_error(fields):
    assert len(collected(of_pod(**fields)).pod_metrics) == 1


def test_samples_tell_the_time_of_a_file():
    """A file without a recorded time is as old as most of them, if nothing else tells more."""
    node = {"kind": "NodeMetrics", "metadata": {"name": "n1"}, "timestamp": "2026-01-15T11:00:00Z"}
    assert collected(node).newest() == datetime(2026, 1, 15, 11, tzinfo=UTC)
    pod = of_pod(timestamp="2026-01-15T11:30:00Z")
    assert collected(node, pod).newest() == datetime(2026, 1, 15, 11, tzinfo=UTC)
