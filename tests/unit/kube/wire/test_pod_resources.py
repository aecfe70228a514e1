"""What pods request and may use, and the quality of service that follows."""

from typing import Any

import pytest

from tests.unit.kube.wire.documents import container, read_pod

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("spec", "quality"),
    [
        pytest.param({"containers": [container()]}, "BestEffort", id="nothing is asked for"),
        pytest.param({"containers": [container(requests={"cpu": "0"})]}, "BestEffort", id="zero is nothing"),
        pytest.param({"containers": [container(requests={"example.com/x": "1"})]}, "BestEffort", id="devices"),
        pytest.param({"containers": [container(requests={"cpu": "1"})]}, "Burstable", id="a request alone"),
        pytest.param({"containers": [container(limits=BOTH)]}, "Burstable", id="limits alone"),
        pytest.param({"containers": [container(requests=BOTH, limits=BOTH)]}, "Guaranteed", id="both, and equal"),
        pytest.param({"containers": [container(requests={"cpu": "1m"})]}, "Burstable", id="a thousandth of a core"),
        pytest.param(
            {"containers": [container(requests=BOTH, limits={**BOTH, "cpu": "2"})]}, "Burstable", id="unequal cpu"
        ),
        pytest.param(
            {"containers": [container(requests={"cpu": "1"}, limits={"cpu": "1"})]}, "Burstable", id="memory is missing"
        ),
        pytest.param(
            {"containers": [container(requests=BOTH, limits=BOTH), container()]},
            "Burstable",
            id="one container lacks them",
        ),
        pytest.param(
            {"containers": [container(requests=BOTH, limits=BOTH)], "initContainers": [container()]},
            "Burstable",
            id="init containers count",
        ),
        pytest.param(
            {"containers": [container(requests=BOTH, limits={"cpu": "2", "memory": "2Gi"})] * 2},
            "Burstable",
            id="two that may use twice what they ask for",
        ),
        pytest.param(
            {"containers": [container(requests=BOTH), container(limits=BOTH)]}, "Burstable", id="only their sums agree"
        ),
        pytest.param({"containers": [container(limits={"cpu": "1m"})]}, "Burstable", id="the least limit there is"),
        pytest.param(
            {"containers": [container(requests={"cpu": "1m", "memory": 1}, limits={"cpu": "1m", "memory": 1})]},
            "Guaranteed",
            id="the least of both",
        ),
    ],
)
def test_quality_of_service_is_derived_from_cpu_and_memory(spec: dict[str, Any], quality: str) -> None:
    """By the rules of Kubernetes, where the status does not say."""
    assert read_pod(spec=spec).qos == quality
    assert read_pod(spec=spec, status={"qosClass": "Burstable"}).qos == "Burstable"


def test_requests_of_containers_sidecars_pod_and_overhead_come_together() -> None:
    """100m beside a sidecar of 50m; an init container of 400m beside that sidecar; 7m on top."""
    init = [{"restartPolicy": "Always", **container(requests={"cpu": "50m"})}, container(requests={"cpu": "400m"})]
    spec = {"containers": [container(requests={"cpu": "100m"})], "initContainers": init, "overhead": {"cpu": "7m"}}

    assert read_pod(spec=spec).spec.requests == {"cpu": 457}
    assert read_pod(spec={**spec, "resources": {"requests": {"cpu": "300m"}}}).spec.requests == {"cpu": 307}
    assert read_pod(spec=spec).spec.requested == {"cpu"}
