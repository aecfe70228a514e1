"""LIST answers of Kubernetes 1.29 to 1.36, and of later versions: fields that came and went take nothing away."""

from typing import Any

import pytest

from tests.unit.kube.wire.documents import pod_document, read

#: The versions (1.x) that are supported.
VERSIONS = range(29, 37)
STATUS = {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"restartCount": 1}]}
SPEC = {"containers": [{"image": "web", "resources": {}}], "volumes": [{"image": {"reference": "web:1"}}]}
ITEMS: dict[str, dict[str, Any]] = {
    "Node": {
        "metadata": {"name": "n1"},
        "spec": {"taints": [{"key": "spot"}]},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "nodeInfo": {}, "images": [{}]},
    },
    "Pod": pod_document(spec={**SPEC, "securityContext": {}, "resourceClaims": [{"name": "gpu"}]}, status=STATUS),
    "PodDisruptionBudget": {"metadata": {"name": "web"}, "spec": {}, "status": {"disruptionsAllowed": 1}},
    "ReplicaSet": {"metadata": {"name": "web", "uid": "1"}, "spec": {"template": {"spec": SPEC}}, "status": {}},
    "Deployment": {"metadata": {"name": "web", "uid": "1"}, "spec": {"strategy": {}}, "status": {}},
    "CSIDriver": {"metadata": {"name": "disk"}, "spec": {}},
    "CSINode": {"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {"kind": "Job", "name": "j"}}, "status": {}},
}


def with_more(there: Any) -> Any:
    """A copy with a field in each object that nobody knows."""
    if isinstance(there, list):
        return [with_more(each) for each in there]
    if not isinstance(there, dict):
        return there
    return {**{name: with_more(each) for name, each in there.items()}, "later": {"of": ["another version"]}}


@pytest.mark.parametrize("kind", ITEMS)
def test_fields_of_other_concerns_change_nothing(kind: str) -> None:
    """The snapshot is the same, and nothing is malformed."""
    found = read(kind, with_more(ITEMS[kind]))

    assert found.warnings == ()
    assert repr(found) == repr(read(kind, ITEMS[kind]))  # specs are equal where they are the same one


@pytest.mark.parametrize("named", [{"resourceClaimName": "gpu"}, {"source": {"resourceClaimName": "gpu"}}])
def test_a_claim_of_a_device_is_seen_in_either_form(named: dict[str, Any]) -> None:
    """Up to 1.30 what is claimed is below `source`."""
    (pod,) = read("Pod", pod_document(spec={"resourceClaims": [{"name": "gpu", **named}]})).pods

    assert pod.spec.resource_claims
