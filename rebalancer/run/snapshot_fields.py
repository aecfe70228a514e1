"""What a snapshot file keeps of an object: an allow-list of fields, so that new or unknown fields are left out.

A path names a field; it goes into the items of lists.  At its end a number, a boolean or a text is kept; a map or a
list becomes empty and only shows that it is there: `hostPath: {}`.  A path that ends in `*` keeps all that is below it:
labels, selectors, quantities, and placement rules, which are made of labels.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rebalancer.kube.wire import storage
from rebalancer.kube.wire.annotations import ANNOTATIONS, NODE_ANNOTATIONS, OWNER_ANNOTATIONS

#: A field without fields of its own is a leaf.
Tree: TypeAlias = "dict[str, Tree]"

_ALL = "*"
_METADATA = """
    metadata.name  metadata.namespace  metadata.uid  metadata.generation  metadata.labels.*
    metadata.creationTimestamp  metadata.deletionTimestamp
"""
_OWNER_REFERENCES = """
    metadata.ownerReferences.apiVersion  metadata.ownerReferences.kind  metadata.ownerReferences.name
    metadata.ownerReferences.uid  metadata.ownerReferences.controller
"""
_POD = """
    metadata.annotations  status.nominatedNodeName
    status.phase  status.reason  status.qosClass  status.startTime
    status.conditions.type  status.conditions.status  status.conditions.reason
    status.conditions.lastTransitionTime
"""
#: Fields of a pod's spec and of a pod template's spec.
_SPEC = """
    nodeName  priority  priorityClassName  schedulerName  hostNetwork
    terminationGracePeriodSeconds  nodeSelector.*  affinity.*  tolerations.*
    topologySpreadConstraints.*  resources.*  overhead.*  resourceClaims.name
    volumes.name  volumes.hostPath  volumes.emptyDir
    volumes.persistentVolumeClaim.claimName  volumes.ephemeral  volumes.image.reference
    volumes.gcePersistentDisk.pdName  volumes.gcePersistentDisk.readOnly
    volumes.awsElasticBlockStore.volumeID  volumes.awsElasticBlockStore.readOnly
    volumes.iscsi.iqn  volumes.iscsi.readOnly
    volumes.rbd.monitors.*  volumes.rbd.pool  volumes.rbd.image  volumes.rbd.readOnly
    schedulingGates.name  preemptionPolicy
"""
_CONTAINER = "name image restartPolicy resources.* ports.containerPort ports.hostPort ports.protocol"
_CONTAINER_STATUS = """
    name ready restartCount state.waiting.reason state.terminated.reason state.terminated.exitCode
    lastState.terminated.reason
"""
_ROLLOUT = """
    status.replicas  status.updatedReplicas  status.observedGeneration  status.currentRevision  status.updateRevision
"""
_WORKLOAD = f"""
    {_OWNER_REFERENCES}
    spec.selector.*  spec.replicas  {_ROLLOUT}
"""
_MADE_FROM_TEMPLATES = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
_KINDS = {
    "Node": """
        metadata.annotations
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
    "PersistentVolume": """
        spec.storageClassName  spec.capacity.*  spec.accessModes.*  spec.nodeAffinity.*
        spec.claimRef.namespace  spec.claimRef.name  spec.claimRef.uid  spec.csi.driver  spec.csi.volumeHandle
        spec.volumeMode  spec.volumeAttributesClassName  status.phase
    """,
    "Service": "spec.selector.*",
    "Deployment": f"""
        spec.paused  spec.replicas  spec.strategy.type
        spec.strategy.rollingUpdate.maxSurge  spec.strategy.rollingUpdate.maxUnavailable  {_ROLLOUT}
    """,
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "Job": """
        spec.podReplacementPolicy  spec.podFailurePolicy  spec.backoffLimit  spec.backoffLimitPerIndex
        spec.completions  status.active  status.succeeded
        status.failed  status.conditions.type  status.conditions.status
    """,
    "HorizontalPodAutoscaler": """
        spec.scaleTargetRef.kind  spec.scaleTargetRef.name  status.lastScaleTime
        spec.metrics.type  spec.metrics.resource.name
        spec.metrics.containerResource.name  spec.metrics.containerResource.container
    """,
    "StorageClass": "metadata.annotations provisioner volumeBindingMode allowedTopologies.*",
    "CSINode": "metadata.annotations spec.drivers.name spec.drivers.allocatable.count",
    "CSIDriver": "spec.storageCapacity spec.preventPodSchedulingIfMissing",
    "CSIStorageCapacity": "storageClassName nodeTopology.* capacity maximumVolumeSize",
    "VolumeAttachment": "spec.attacher spec.nodeName spec.source.persistentVolumeName",
    "NodeMetrics": "timestamp window usage.*",
    "PodMetrics": "timestamp window containers.name containers.usage.*",
}
#: The annotations that are kept.
_ANNOTATIONS = {
    "Node": NODE_ANNOTATIONS,
    "PersistentVolumeClaim": storage.ANNOTATIONS,
    "StorageClass": (storage.DEFAULT_CLASS,),
    "CSINode": (storage.MIGRATED,),
    **dict.fromkeys(
        ("Namespace", "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Job"), OWNER_ANNOTATIONS
    ),
}


def kept_fields() -> Mapping[str, Tree]:
    """Return for each kind the fields that are kept of its objects."""
    trees = {kind: _tree(f"{_METADATA} {paths}".split()) for kind, paths in _KINDS.items()}
    for kind in _MADE_FROM_TEMPLATES:
        trees[kind]["spec"]["template"] = {"metadata": {"labels": {_ALL: {}}}, "spec": _pod_spec()}
    for kind, annotations in _ANNOTATIONS.items():
        trees[kind]["metadata"]["annotations"] = {name: {} for name in annotations}
    return trees | {"Pod": _pod()}


def _pod() -> Tree:
    statuses = [
        f"status.{group}.{path}"
        for group in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for path in _CONTAINER_STATUS.split()
    ]
    tree = _tree([*f"{_METADATA} {_OWNER_REFERENCES} {_POD}".split(), *statuses])
    tree["metadata"]["annotations"] = {name: {} for name in ANNOTATIONS}
    tree["spec"] = _pod_spec()
    return tree


def _pod_spec() -> Tree:
    containers = [f"{group}.{path}" for group in ("containers", "initContainers") for path in _CONTAINER.split()]
    return _tree([*_SPEC.split(), *containers])


def _tree(paths: Iterable[str]) -> Tree:
    tree: Tree = {}
    for path in paths:
        here = tree
        for step in path.split("."):
            here = here.setdefault(step, {})
    return tree


def kept(value: Any, fields: Tree) -> Any:
    """Return the part of a value that may leave the cluster; the value itself is not changed.

    A text where a map should be becomes empty: it is still malformed, but shows nothing.
    """
    if _ALL in fields:
        return value
    if isinstance(value, list):
        return [kept(each, fields) for each in value] if fields else []
    if isinstance(value, dict):
        return {key: kept(value[key], below) for key, below in fields.items() if key in value}
    return "" if fields and isinstance(value, str) else value
