"""Nodes, the small kinds and usage from the API server's JSON."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.taints import Taint
from tests.make import NOW
from tests.unit.kube.wire.documents import read


def test_a_node() -> None:
    taints = [{"key": "k", "value": None, "effect": "NoSchedule"}, {"key": "bare", "effect": None}]
    images = [{"names": ["web:1", "web@sha256:0"], "sizeBytes": 1000}, {"names": None, "sizeBytes": 7}]
    conditions = [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T00:00:00Z"},
        {"type": "DiskPressure", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    status = {
        "nodeInfo": {"kubeletVersion": "v1.36.1"},
        "allocatable": {"cpu": "3500m", "memory": "1Gi"},
        "capacity": {"cpu": "4"},
        "addresses": [{"type": "InternalIP", "address": each} for each in ("10.0.0.1", "fd00::1")],
    }
    spec = {"unschedulable": True, "taints": taints}
    written = {"metadata": {"name": "n1", "labels": {"zone": "a"}}, "spec": spec}
    (node,) = read("Node", {**written, "status": {**status, "images": images, "conditions": conditions}}).nodes

    assert (node.name, node.labels, node.unschedulable, node.ready) == ("n1", {"zone": "a"}, True, True)
    assert node.taints == (Taint("k", "", "NoSchedule"), Taint("bare"))
    assert node.allocatable == {"cpu": 3500, "memory": 1 << 30}
    assert (node.capacity, node.kubelet_version) == ({"cpu": 4000}, "v1.36.1")
    assert node.addresses == {"InternalIP": "10.0.0.1"}
    assert node.seen == datetime(2026, 1, 2, tzinfo=UTC)
    assert [(each.names, each.size) for each in node.images] == [(("web:1", "web@sha256:0"), 1000), ((), 7)]


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "MemoryPressure", "status": "True"}], True),
        ([], True),
        (None, True),
    ],
)
def test_a_node_is_ready_unless_its_condition_says_otherwise(conditions: Any, ready: bool) -> None:
    """No Ready condition counts as ready, as in the descheduler."""
    assert read("Node", {"metadata": {"name": "n"}, "status": {"conditions": conditions}}).nodes[0].ready is ready


def test_a_node_may_lack_everything_but_its_name() -> None:
    bare = {"metadata": {"name": "n", "labels": None}, "spec": None, "status": None}
    nodes = read("Node", bare, {"metadata": {"name": "m"}, "status": {"nodeInfo": {"kubeletVersion": None}}}).nodes

    for node in nodes:
        assert (node.allocatable, node.taints, node.seen, node.kubelet_version) == ({}, (), None, "")


def test_the_small_kinds() -> None:
    claims = [
        {"metadata": {"name": "a", "namespace": "x"}, "spec": {"storageClassName": "fast"}},
        {"metadata": {"name": "b", "namespace": "x"}, "spec": {"storageClassName": ""}},
    ]
    namespaces = [{"metadata": {"name": "x", "labels": {"team": "t"}}}, {"metadata": {"name": "y", "labels": None}}]

    assert read("Namespace", *namespaces).namespaces == {"x": {"team": "t"}, "y": {}}
    classes = [{"metadata": {"name": name}, "value": 1000} for name in ("high", "also high")]
    assert read("PriorityClass", *classes).priority_classes == {"high": 1000, "also high": 1000}
    assert read("PersistentVolumeClaim", *claims).claims == {("x", "a"): "fast", ("x", "b"): None}


@pytest.mark.parametrize(
    ("annotations", "keeping"),
    [
        ({"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}, "scale-down-disabled"),
        ({"karpenter.sh/do-not-disrupt": "true"}, "do-not-disrupt"),
        ({"karpenter.sh/do-not-disrupt": "perhaps"}, "do-not-disrupt"),
        ({"karpenter.sh/do-not-disrupt": None}, "do-not-disrupt"),
        ({"karpenter.sh/do-not-disrupt": " False"}, ""),
        ({"cluster-autoscaler.kubernetes.io/scale-down-disabled": "false"}, ""),
        ({"other": "true"}, ""),
        (None, ""),
    ],
)
def test_annotations_keep_a_node_from_autoscalers_unless_they_clearly_do_not(annotations: Any, keeping: str) -> None:
    """What is neither true nor false may be meant to keep it."""
    found = read("Node", {"metadata": {"name": "n", "annotations": annotations}}).nodes[0].keeping

    assert found.rpartition("/")[2] == keeping


def of_pod(*containers, **fields):
    listed = [{"name": str(number), "usage": usage} for number, usage in enumerate(containers)]
    return {"metadata": {"name": "a", "namespace": "x"}, "containers": listed, **fields}


def test_a_nodes_usage_is_in_millicores_and_bytes():
    """Rounded up, as quantities are; a negative value is not a measurement; the time has its zone."""
    usage = {"cpu": "1500000001n", "memory": "2Ki", "ephemeral-storage": "-1"}
    metrics = {"metadata": {"name": "n1"}, "timestamp": "2026-01-15T12:00:00Z", "usage": usage}

    assert read("NodeMetrics", metrics).node_metrics == (NodeMetrics("n1", {"cpu": 1501, "memory": 2048}, NOW),)


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
    for more in ({}, {"timestamp": None}, {"window": "20s", "more": 1}):
        assert read("PodMetrics", of_pod(*containers, **more)).pod_metrics == (PodMetrics("x", "a", usage),)
    assert read("PodMetrics", of_pod(containers=None)).pod_metrics == (PodMetrics("x", "a", {}),)
