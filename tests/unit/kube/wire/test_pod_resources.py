"""What pods request and may use, and the quality of service that follows."""

from typing import Any

import pytest

from tests.unit.kube.wire.documents import container, read_pod

BOTH, TWICE, LEAST = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "1m", "memory": 1}
GUARANTEED = container(requests=BOTH, limits=BOTH)


@pytest.mark.parametrize(
    ("quality", "containers", "init"),
    [
        # zero is nothing, and so are devices
        *(("BestEffort", [container(requests=each)], []) for each in ({}, {"cpu": "0"}, {"example.com/x": "1"})),
        # both, and equal
        ("Guaranteed", [GUARANTEED], []),
        ("Guaranteed", [container(requests=LEAST, limits=LEAST)], []),
        # one of the two alone, and the least of it
        *(("Burstable", [container(**{each: BOTH})], []) for each in ("requests", "limits")),
        *(("Burstable", [container(**{each: {"cpu": "1m"}})], []) for each in ("requests", "limits")),
        # unequal cpu, and no memory
        ("Burstable", [container(requests=BOTH, limits={**BOTH, "cpu": "2"})], []),
        ("Burstable", [container(requests={"cpu": "1"}, limits={"cpu": "1"})], []),
        # every container counts, by itself
        ("Burstable", [GUARANTEED, container()], []),
        ("Burstable", [GUARANTEED], [container()]),
        ("Burstable", [container(requests=BOTH, limits=TWICE)] * 2, []),
        ("Burstable", [container(requests=BOTH), container(limits=BOTH)], []),
    ],
)
def test_quality_of_service_is_derived_from_cpu_and_memory(quality: str, containers: Any, init: Any) -> None:
    """By the rules of Kubernetes, where the status does not say."""
    spec = {"containers": containers, "initContainers": init}

    assert read_pod(spec=spec).qos == quality
    assert read_pod(spec=spec, status={"qosClass": "Burstable"}).qos == "Burstable"


def test_requests_of_containers_sidecars_pod_and_overhead_come_together() -> None:
    """100m beside a sidecar of 50m; an init container of 400m beside that sidecar; 7m on top."""
    init = [{"restartPolicy": "Always", **container(requests={"cpu": "50m"})}, container(requests={"cpu": "400m"})]
    spec = {"containers": [container(requests={"cpu": "100m"})], "initContainers": init, "overhead": {"cpu": "7m"}}

    assert read_pod(spec=spec).spec.requests == {"cpu": 457}
    assert read_pod(spec={**spec, "resources": {"requests": {"cpu": "300m"}}}).spec.requests == {"cpu": 307}
    assert read_pod(spec=spec).spec.requested == {"cpu"}
