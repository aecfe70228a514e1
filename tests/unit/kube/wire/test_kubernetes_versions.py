"""LIST answers of Kubernetes 1.29 to 1.36: what came and went among the fields takes nothing away from what is read.

The fields are those by which the examples of objects differ that k8s.io/api keeps of each version (its folder testdata;
of 1.29 and 1.30 the API's reference), with values of the right kind.  Whole answers of eight servers would hold the
same, and much that never changed.
"""

from copy import deepcopy
from typing import Any

import pytest

from tests.unit.kube.wire.documents import pod_document, read

Object = dict[str, Any]

#: The versions (1.x) whose fields stand below.
VERSIONS = range(29, 37)
STATUS = {"conditions": [{}], "containerStatuses": [{}]}
BASE: dict[str, Object] = {
    "Node": {"metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
    "Pod": pod_document(spec={"containers": [{}], "volumes": [{"image": {"reference": "web:1"}}]}, status=STATUS),
    "ReplicaSet": {"metadata": {"name": "web", "uid": "1"}, "spec": {"template": {}}},
    "CSIDriver": {"metadata": {"name": "disk"}},
    "CSINode": {"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "d", "allocatable": {"count": 3}}]}},
    "HorizontalPodAutoscaler": {"spec": {"scaleTargetRef": {"kind": "Job", "name": "j"}}},
}
LATER = {"of": ["a later version"]}

#: Kind, where, and what some of these versions have there, or later ones may; nothing of this decides where a pod goes.
FIELDS: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("Node", ("status", "runtimeHandlers"), [{"name": "runc", "features": {"userNamespaces": True}}]),
    ("Node", ("status", "features"), {"supplementalGroupsPolicy": True}),
    ("Node", ("status", "nodeInfo", "swap"), {"capacity": 1 << 30}),
    ("Node", ("status", "declaredFeatures"), ["GuaranteedQoSPodCPUResize"]),
    ("Pod", ("status", "resize"), "InProgress"),
    ("Pod", ("status", "hostIPs"), [{"ip": "10.0.0.1"}]),
    ("Pod", ("spec", "securityContext"), {"appArmorProfile": {"type": "RuntimeDefault"}}),
    ("Pod", ("spec", "containers", 0, "volumeMounts"), [{"name": "v", "recursiveReadOnly": "Enabled"}]),
    ("Pod", ("status", "containerStatuses", 0, "user"), {"linux": {"uid": 1000, "gid": 1000}}),
    ("Pod", ("status", "containerStatuses", 0, "allocatedResourcesStatus"), [{"name": "claim:gpu"}]),
    ("Pod", ("metadata", "generation"), 3),
    ("Pod", ("status", "observedGeneration"), 3),
    ("Pod", ("status", "conditions", 0, "observedGeneration"), 3),
    ("Pod", ("spec", "containers", 0, "lifecycle"), {"stopSignal": "SIGUSR1"}),
    ("Pod", ("spec", "hostnameOverride"), "web"),
    ("Pod", ("spec", "containers", 0, "restartPolicyRules"), [{"action": "Restart", "exitCodes": {}}]),
    ("Pod", ("status", "extendedResourceClaimStatus"), {"resourceClaimName": "c", "requestMappings": []}),
    ("Pod", ("spec", "workloadRef"), {"name": "w", "podGroup": "g"}),
    ("Pod", ("status", "allocatedResources"), {"cpu": "600m"}),
    ("Pod", ("spec", "schedulingGroup"), {"podGroupName": "g"}),
    ("Pod", ("status", "nodeAllocatableResourceClaimStatuses"), []),
    ("ReplicaSet", ("status", "terminatingReplicas"), 1),
    ("CSIDriver", ("spec", "nodeAllocatableUpdatePeriodSeconds"), 60),
    ("CSIDriver", ("spec", "serviceAccountTokenInSecrets"), True),
    ("Node", ("status", "addresses", 0, "later"), LATER),
    ("Pod", ("spec", "volumes", 0, "image", "later"), LATER),
    ("CSINode", ("spec", "drivers", 0, "allocatable", "later"), LATER),
    ("HorizontalPodAutoscaler", ("spec", "scaleTargetRef", "later"), LATER),
)  # fmt: skip


def put(there: Any, path: tuple[Any, ...], value: Any) -> Object:
    """A copy with a value at a path."""
    changed = place = deepcopy(there)
    for step in path[:-1]:
        place = place[step] if isinstance(place, list) else place.setdefault(step, {})
    place[path[-1]] = value
    return changed


@pytest.mark.parametrize("kind", BASE)
def test_fields_of_other_concerns_change_nothing(kind: str) -> None:
    """The snapshot is the same, and nothing is malformed."""
    changed = BASE[kind]
    for concerned, path, value in FIELDS:
        changed = put(changed, path, value) if concerned == kind else changed

    found = read(kind, changed)

    assert found.warnings == ()
    assert repr(found) == repr(read(kind, BASE[kind]))  # specs are equal where they are the same one


@pytest.mark.parametrize("named", [{"resourceClaimName": "gpu"}, {"source": {"resourceClaimName": "gpu"}}])
def test_a_claim_of_a_device_is_seen_in_either_form(named: Object) -> None:
    """Up to 1.30 what is claimed is below `source`."""
    (pod,) = read("Pod", put(BASE["Pod"], ("spec", "resourceClaims"), [{"name": "gpu", **named}])).pods

    assert pod.spec.resource_claims
