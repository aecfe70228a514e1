"""Writes a live cluster to a file that `--snapshot` reads.

What the file keeps of an object is an allow-list of fields, so that new or unknown fields are left out.  A path names a
field; it goes into the items of lists.  At its end a number, a boolean or a text is kept; a map or a list becomes empty
and only shows that it is there: `hostPath: {}`.  A path that ends in `*` keeps all that is below it: labels, selectors,
quantities, and placement rules, which are made of labels.  In braces stand several ends of one path, as in a shell.
"""

import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from rebalancer.errors import ClusterError, Forbidden, UsageError
from rebalancer.kube.answers import NotFound, Rejected
from rebalancer.kube.client import Client
from rebalancer.kube.lists import read_list
from rebalancer.kube.tries import Deadline
from rebalancer.kube.wire import scheduler_inputs
from rebalancer.kube.wire.annotations import ANNOTATIONS, NODE_ANNOTATIONS, OWNER_ANNOTATIONS
from rebalancer.kube.wire.pages import KINDS, METRICS_KINDS, PATHS, Items, path_of_list
from rebalancer.memory.document import KEY
from rebalancer.report.document import timestamp
from rebalancer.run.cluster_view import unread_in_words
from rebalancer.run.live import described, open_cluster
from rebalancer.run.memory import BREAKER_NOTE, PAUSE_KEY, PAUSE_NOTE, MemorySource
from rebalancer.run.options import ClientOptions, LeaseOptions
from rebalancer.run.progress import Progress

#: How much of the file's name the temporary file's name takes over: a name may have at most 255 bytes.
_LONGEST_PREFIX = 40
_METRICS_SECONDS = 10.0  # the longest wait for usage, which a snapshot can do without


def write_whole(path: Path, content: bytes) -> None:
    """Write a file with mode 0600, whole or not at all; to a device or a pipe directly."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    target = path.resolve()  # a link stays a link
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:_LONGEST_PREFIX]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)  # it was renamed to the target


def _read(live: Client, progress: Progress, kind: str, deadline: Deadline | None = None) -> list[msgspec.Raw]:
    fields = kept_fields()[kind]

    def encoded(item: dict[str, Any]) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(kept(item, fields)))

    def told(found: Items[dict[str, Any], msgspec.Raw]) -> None:
        progress.reading(KINDS[kind][1], len(found.items), found.more)

    new = partial(Items, kind, dict[str, Any], encoded)
    return read_list(live, path_of_list(kind), new, deadline=deadline, after_page=told).items


def capture(
    client: ClientOptions, path: str, progress: Progress, lease: LeaseOptions
) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """Write nodes, pods and all else that policies may need to a file (`-`: standard output), gzipped if named `.gz`.

    Usage is included if there is a metrics-server.  Return the number of objects by kind, and warnings.
    """
    live = open_cluster(client)
    now = datetime.now(UTC)
    with progress.stage("read"):
        memory = _memory(live, lease)
        lists, warnings = _read_everything(partial(_read, live, progress))
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "rebalancer": {"now": timestamp(now), **described(live), **memory},
        "items": [{"apiVersion": KINDS[kind][0], "kind": f"{kind}List", "items": each} for kind, each in lists.items()],
    }
    content, target = msgspec.json.encode(document), Path(path)
    try:
        if path == "-":
            sys.stdout.buffer.write(content)
            sys.stdout.buffer.flush()
        else:
            write_whole(target, gzip.compress(content) if target.suffix == ".gz" else content)
    except OSError as error:
        raise UsageError(f"snapshot {path} cannot be written: {error.strerror}") from error
    return {kind: len(items) for kind, items in lists.items()}, tuple(warnings)


def _read_everything(read: Callable[..., list[msgspec.Raw]]) -> tuple[dict[str, list[msgspec.Raw]], list[str]]:
    lists: dict[str, list[msgspec.Raw]] = {}
    warnings = []
    unread: dict[str, ClusterError] = {}
    for kind in PATHS:
        try:
            lists[kind] = read(kind)
        except (Forbidden, Rejected) as error:
            if kind in ("Node", "Pod"):
                raise
            unread[kind] = error
    if unread:
        warnings.append(f"left out: {unread_in_words(unread)}")
    deadline = Deadline.after(_METRICS_SECONDS)
    try:
        lists |= {kind: read(kind, deadline) for kind in METRICS_KINDS}
    except NotFound:
        pass  # there is no metrics-server
    except (ClusterError, ValueError) as error:
        warnings.append(f"usage is left out: {error}")
    return lists, warnings


def _memory(live: Client, lease: LeaseOptions) -> Mapping[str, object]:
    source = MemorySource.of(live, lease)
    try:
        found = {**source.map.read().data, **source.notes()}
        return {"memory": {key: found[key] for key in (KEY, PAUSE_KEY, PAUSE_NOTE, BREAKER_NOTE) if key in found}}
    except ClusterError as error:
        return {"memoryProblem": f"the memory {source.name} could not be read: {error}"}


Tree: TypeAlias = "dict[str, Tree]"  # A field without fields of its own is a leaf
_ALL = "*"
_METADATA = "metadata.{name,namespace,uid,generation,labels.*,creationTimestamp,deletionTimestamp}"
_OWNER_REFERENCES = "metadata.ownerReferences.{apiVersion,kind,name,uid,controller}"
#: Fields of a pod's spec and of a pod template's spec.
_SPEC = """
    nodeName  priority  priorityClassName  schedulerName  hostNetwork  terminationGracePeriodSeconds
    nodeSelector.*  affinity.*  tolerations.*  topologySpreadConstraints.*  resources.*  overhead.*
    resourceClaims.name
    volumes.{name,hostPath,emptyDir,persistentVolumeClaim.claimName,ephemeral,image.reference}
    volumes.gcePersistentDisk.{pdName,readOnly}  volumes.awsElasticBlockStore.{volumeID,readOnly}
    volumes.iscsi.{iqn,readOnly}  volumes.rbd.{monitors.*,pool,image,readOnly}
    schedulingGates.name  preemptionPolicy
"""
_CONTAINER = ".{name,image,restartPolicy,resources.*,ports.containerPort,ports.hostPort,ports.protocol}"
_CONTAINER_STATUS = """
    name ready restartCount state.{waiting.reason,terminated.reason,terminated.exitCode} lastState.terminated.reason
"""
_ROLLOUT = "status.{replicas,updatedReplicas,observedGeneration,currentRevision,updateRevision}"
_WORKLOAD = f"{_OWNER_REFERENCES} spec.{{selector.*,replicas}} {_ROLLOUT}"
_MADE_FROM_TEMPLATES = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
_KINDS = {
    "Pod": f"""
        {_OWNER_REFERENCES}  metadata.annotations  status.{{nominatedNodeName,phase,reason,qosClass,startTime}}
        status.conditions.{{type,status,reason,lastTransitionTime}}
    """,
    "Node": """
        metadata.annotations  spec.unschedulable  spec.taints.{key,value,effect}
        status.{allocatable.*,capacity.*,addresses.type,addresses.address}
        status.conditions.{type,status,reason,lastHeartbeatTime,lastTransitionTime}
        status.{nodeInfo.kubeletVersion,images.names.*,images.sizeBytes}
    """,
    "PodDisruptionBudget": """
        spec.{selector.*,minAvailable,maxUnavailable,unhealthyPodEvictionPolicy}
        status.{observedGeneration,disruptionsAllowed,disruptedPods.*,currentHealthy,desiredHealthy,expectedPods}
    """,
    "Namespace": "",
    "PriorityClass": "value globalDefault",
    "PersistentVolumeClaim": """
        metadata.annotations  spec.{storageClassName,volumeName,accessModes.*,resources.requests.*,selector.*}
        spec.{volumeMode,volumeAttributesClassName}
    """,
    "PersistentVolume": """
        spec.{storageClassName,capacity.*,accessModes.*,nodeAffinity.*,claimRef.namespace,claimRef.name,claimRef.uid}
        spec.{csi.driver,csi.volumeHandle,volumeMode,volumeAttributesClassName}  status.phase
    """,
    "Service": "spec.selector.*",
    "Deployment": f"""
        spec.{{paused,replicas,strategy.type}}  spec.strategy.rollingUpdate.{{maxSurge,maxUnavailable}}  {_ROLLOUT}
    """,
    "ReplicaSet": _WORKLOAD,
    "ReplicationController": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "Job": """
        spec.{podReplacementPolicy,podFailurePolicy,backoffLimit,backoffLimitPerIndex,completions}
        status.{active,succeeded,failed,conditions.type,conditions.status}
    """,
    "HorizontalPodAutoscaler": """
        spec.scaleTargetRef.{kind,name}  status.lastScaleTime
        spec.metrics.{type,resource.name,containerResource.name,containerResource.container}
    """,
    "StorageClass": "metadata.annotations provisioner volumeBindingMode allowedTopologies.*",
    "CSINode": "metadata.annotations spec.drivers.{name,allocatable.count}",
    "CSIDriver": "spec.{storageCapacity,preventPodSchedulingIfMissing}",
    "CSIStorageCapacity": "storageClassName nodeTopology.* capacity maximumVolumeSize",
    "VolumeAttachment": "spec.{attacher,nodeName,source.persistentVolumeName}",
    "NodeMetrics": "timestamp window usage.*",
    "PodMetrics": "timestamp window containers.{name,usage.*}",
}
#: The annotations that are kept.
_ANNOTATIONS = {
    "Pod": ANNOTATIONS,
    "Node": NODE_ANNOTATIONS,
    "PersistentVolumeClaim": scheduler_inputs.ANNOTATIONS,
    "StorageClass": (scheduler_inputs.DEFAULT_CLASS,),
    "CSINode": (scheduler_inputs.MIGRATED,),
    **dict.fromkeys(("Namespace", *scheduler_inputs.OWNERS), OWNER_ANNOTATIONS),
}


def kept_fields() -> Mapping[str, Tree]:
    """Return for each kind the fields that are kept of its objects."""
    trees = {kind: _tree(f"{_METADATA} {paths}") for kind, paths in _KINDS.items()}
    pod_spec = _tree(f"{_SPEC} containers{_CONTAINER} initContainers{_CONTAINER}")
    for kind in _MADE_FROM_TEMPLATES:
        trees[kind]["spec"]["template"] = {"metadata": {"labels": {_ALL: {}}}, "spec": pod_spec}
    trees["Pod"]["spec"] = pod_spec
    for group in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        trees["Pod"]["status"][group] = _tree(_CONTAINER_STATUS)
    for kind, annotations in _ANNOTATIONS.items():
        trees[kind]["metadata"]["annotations"] = {name: {} for name in annotations}
    return trees


def _tree(paths: str) -> Tree:
    tree: Tree = {}
    for path in paths.split():
        above, _, names = path.partition("{")
        for name in names.rstrip("}").split(","):
            here = tree
            for step in f"{above}{name}".split("."):
                here = here.setdefault(step, {})
    return tree


def kept(value: Any, fields: Tree) -> Any:
    """Return the part of a value that may leave the cluster; a text where a map should be becomes empty."""
    if _ALL in fields:
        return value
    if isinstance(value, list):
        return [kept(each, fields) for each in value] if fields else []
    if isinstance(value, dict):
        return {key: kept(value[key], below) for key, below in fields.items() if key in value}
    return "" if fields and isinstance(value, str) else value
