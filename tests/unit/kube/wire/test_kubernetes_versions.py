"""LIST answers of Kubernetes 1.29 to 1.36: what came and went among the fields takes nothing away from what is read.

The fields are those by which the examples of objects differ that k8s.io/api keeps of each version (its folder testdata;
of 1.29 and 1.30 the API's reference), with values of the right kind.  Whole answers of eight servers would hold the
same, and much that never changed.
"""

from copy import deepcopy
from typing import Any

import pytest

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.wire.collect import Collection
from tests.make import NOW
from tests.unit.kube.wire.documents import page

VERSIONS = range(29, 37)
LAST = VERSIONS[-1]

Object = dict[str, Any]

OWNED = {
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}]
}
BASE: dict[str, Object] = {
    "Node": {
        "metadata": {"name": "n1", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.30.0"},
        },
    },
    "Pod": {
        "metadata": {"name": "web-1", "namespace": "default", "uid": "p", "labels": {"app": "web"}, **OWNED},
        "spec": {
            "nodeName": "n1",
            "priority": 7,
            "containers": [{"name": "web", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            "initContainers": [
                {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
            ],
            "tolerations": [{"key": "k", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "web", "ready": True, "restartCount": 2, "state": {"running": {}}}],
        },
    },
    "PodDisruptionBudget": {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    },
    "ReplicaSet": {
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web"}]}},
        },
        "status": {"replicas": 2},
    },
    "CSIDriver": {"metadata": {"name": "disk"}, "spec": {"attachRequired": True, "storageCapacity": True}},
}  # fmt: skip

#: Kind, the first version and the last, where, and what was there; nothing of this decides where a pod goes.
FIELDS: tuple[tuple[str, int, int, tuple[Any, ...], Any], ...] = (
    ("Node", 30, LAST, ("status", "runtimeHandlers"), [{"name": "runc", "features": {"userNamespaces": True}}]),
    ("Node", 31, LAST, ("status", "features"), {"supplementalGroupsPolicy": True}),
    ("Node", 33, LAST, ("status", "nodeInfo", "swap"), {"capacity": 1 << 30}),
    ("Node", 35, LAST, ("status", "declaredFeatures"), ["GuaranteedQoSPodCPUResize"]),
    ("Pod", 29, 32, ("status", "resize"), "InProgress"),
    ("Pod", 29, LAST, ("status", "hostIPs"), [{"ip": "10.0.0.1"}]),
    ("Pod", 30, LAST, ("spec", "securityContext"), {"appArmorProfile": {"type": "RuntimeDefault"}}),
    ("Pod", 30, LAST, ("spec", "containers", 0, "volumeMounts"), [{"name": "v", "recursiveReadOnly": "Enabled"}]),
    ("Pod", 31, LAST, ("status", "containerStatuses", 0, "user"), {"linux": {"uid": 1000, "gid": 1000}}),
    ("Pod", 31, LAST, ("status", "containerStatuses", 0, "allocatedResourcesStatus"), [{"name": "claim:gpu"}]),
    ("Pod", 33, LAST, ("metadata", "generation"), 3),
    ("Pod", 33, LAST, ("status", "observedGeneration"), 3),
    ("Pod", 33, LAST, ("status", "conditions", 0, "observedGeneration"), 3),
    ("Pod", 33, LAST, ("spec", "containers", 0, "lifecycle"), {"stopSignal": "SIGUSR1"}),
    ("Pod", 34, LAST, ("spec", "hostnameOverride"), "web"),
    ("Pod", 34, LAST, ("spec", "containers", 0, "restartPolicyRules"), [{"action": "Restart", "exitCodes": {}}]),
    ("Pod", 34, LAST, ("status", "extendedResourceClaimStatus"), {"resourceClaimName": "c", "requestMappings": []}),
    ("Pod", 35, 35, ("spec", "workloadRef"), {"name": "w", "podGroup": "g"}),
    ("Pod", 35, LAST, ("status", "allocatedResources"), {"cpu": "600m"}),
    ("Pod", 36, LAST, ("spec", "schedulingGroup"), {"podGroupName": "g"}),
    ("Pod", 36, LAST, ("status", "nodeAllocatableResourceClaimStatuses"), []),
    ("ReplicaSet", 33, LAST, ("status", "terminatingReplicas"), 1),
    ("CSIDriver", 33, LAST, ("spec", "nodeAllocatableUpdatePeriodSeconds"), 60),
    ("CSIDriver", 35, LAST, ("spec", "serviceAccountTokenInSecrets"), True),
)  # fmt: skip


def answers(version: int) -> dict[str, Object]:
    """One object of each kind, with the fields of a version."""
    objects = deepcopy(BASE)
    for kind, first, last, path, value in FIELDS:
        if first <= version <= last:
            put(objects[kind], path, value)
    return objects


def put(there: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        there = there[step]
    there[path[-1]] = value


def read(objects: dict[str, Object]) -> Snapshot:
    collection = Collection()
    for kind, each in objects.items():
        collector = collection.collector(kind)
        collector.add_page(page([each], kind, resourceVersion="1", remainingItemCount=0))
        collection.replace(kind, collector)
    return collection.snapshot(NOW)


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_of_other_concerns_change_nothing(version: int) -> None:
    """The snapshot is the same, object by object, and nothing is malformed."""
    found, plain = read(answers(version)), read(BASE)

    assert found.warnings == ()
    assert repr(found) == repr(plain)  # specs are equal where they are the same one
    assert [(pod.name, pod.spec.requests["cpu"]) for pod in found.pods] == [("web-1", 600)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_claim_of_a_device_is_seen_in_either_form(version: int) -> None:
    """Up to 1.30 what is claimed is below `source`."""
    named = {"resourceClaimName": "gpu"}
    objects = answers(version)
    put(objects["Pod"], ("spec", "resourceClaims"), [{"name": "gpu", **({"source": named} if version < 31 else named)}])

    (pod,) = read(objects).pods
    assert pod.spec.resource_claims


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 32])
def test_what_a_pod_requests_as_a_whole_counts(version: int) -> None:
    """Since 1.32, instead of the sum of its containers."""
    objects = answers(version)
    put(objects["Pod"], ("spec", "resources"), {"requests": {"cpu": "2"}})

    (pod,) = read(objects).pods
    assert pod.spec.requests["cpu"] == 2000
