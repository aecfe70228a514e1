"""What a snapshot file keeps of an object: an allow-list of fields, so that what is new or unknown stays behind.

A path names a field; lists on the way are gone through.  At its end only a number, a truth value or a text is kept, and
of anything else no more than that it is there: `hostPath: {}`.  A path that ends in `*` keeps all that lies below:
labels, selectors, quantities, and rules of placement, which are made of labels.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rebalancer.wire import storage
from rebalancer.wire.annotations import ANNOTATIONS

#: A field without fields of its own is a leaf.
Tree: TypeAlias = "dict[str, Tree]"

_ALL = "*"
_METADATA = """
    metadata.name  metadata.namespace  metadata.uid  metadata.generation  metadata.labels.*
    metadata.creationTimestamp  metadata.deletionTimestamp
"""
_POD = """
    metadata.annotations
    metadata.ownerReferences.apiVersion  metadata.ownerReferences.kind  metadata.ownerReferences.name
    metadata.ownerReferences.uid  metadata.ownerReferences.controller
    spec.nodeName  spec.priority  spec.priorityClassName  spec.schedulerName  spec.hostNetwork
    spec.terminationGracePeriodSeconds  spec.nodeSelector.*  spec.affinity.*  spec.tolerations.*
    spec.topologySpreadConstraints.*  spec.resources.*  spec.overhead.*  spec.resourceClaims.name
    spec.volumes.name  spec.volumes.hostPath  spec.volumes.emptyDir
    spec.volumes.persistentVolumeClaim.claimName  spec.volumes.ephemeral  spec.volumes.image.reference
    spec.volumes.gcePersistentDisk  spec.volumes.awsElasticBlockStore  spec.volumes.iscsi  spec.volumes.rbd
    spec.schedulingGates.name  spec.preemptionPolicy  status.nominatedNodeName
    status.phase  status.reason  status.qosClass  status.startTime
    status.conditions.type  status.conditions.status  status.conditions.reason
    status.conditions.lastTransitionTime
"""
_CONTAINER = "name image restartPolicy resources.* ports.containerPort ports.hostPort ports.protocol"
_CONTAINER_STATUS = "name ready restartCount state.waiting.reason state.terminated.reason state.terminated.exitCode"
_KINDS = {
    "Node": """
        spec.unschedulable  spec.taints.key  spec.taints.value  spec.taints.effect
        status.allocatable.*  status.capacity.*  status.addresses.type  status.addresses.address
        status.conditions.type  status.conditions.status  status.conditions.reason
        status.conditions.lastHeartbeatTime  status.conditions.lastTransitionTime
        status.nodeInfo.kubeletVersion  status.images.names.*  status.images.sizeBytes
    """,
    "PodDisruptionBudget": """
        spec.selector.*  spec.minAvailable  spec.maxUnavailable  spec.unhealthyPodEvictionPolicy
        status.observedGeneration  status.disruptionsAllowed  status.disruptedPods.*
        status.currentHealthy  status.desiredHealthy  status.expectedPods
    """,
    "Namespace": "",
    "PriorityClass": "value globalDefault",
    "PersistentVolumeClaim": """
        metadata.annotations
        spec.storageClassName  spec.volumeName  spec.accessModes.*  spec.resources.requests.*  spec.selector.*
        spec.volumeMode  spec.volumeAttributesClassName
    """,
    "NodeMetrics": "timestamp window usage.*",
    "PodMetrics": "timestamp window containers.name containers.usage.*",
}


def kept_fields() -> Mapping[str, Tree]:
    """Return for each kind what is kept of its objects."""
    trees = {kind: _tree(f"{_METADATA} {paths}".split()) for kind, paths in _KINDS.items()}
    containers = [f"spec.{group}.{path}" for group in ("containers", "initContainers") for path in _CONTAINER.split()]
    statuses = [
        f"status.{group}.{path}"
        for group in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for path in _CONTAINER_STATUS.split()
    ]
    pods = _tree([*_METADATA.split(), *_POD.split(), *containers, *statuses])
    pods["metadata"]["annotations"] = {name: {} for name in ANNOTATIONS}
    trees["PersistentVolumeClaim"]["metadata"]["annotations"] = {name: {} for name in storage.ANNOTATIONS}
    return {"Pod": pods, **trees}


def _tree(paths: Iterable[str]) -> Tree:
    tree: Tree = {}
    for path in paths:
        here = tree
        for step in path.split("."):
            here = here.setdefault(step, {})
    return tree


def kept(value: Any, fields: Tree) -> Any:
    """Return what may leave the cluster of a value, itself left as it is.

    What has another shape than its field should have becomes empty: it stays malformed, and tells nothing.
    """
    if _ALL in fields:
        return value
    if isinstance(value, list):
        return [kept(each, fields) for each in value] if fields else []
    if isinstance(value, dict):
        return {key: kept(value[key], below) for key, below in fields.items() if key in value}
    return "" if fields and isinstance(value, str) else value
