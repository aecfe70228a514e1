"""Manifests that read like the scenario: ``deployment("web", replicas=10, cpu="200m", usage="900m")``.

All builders are pure; `Namespace.create` sends what they return. Pods are labelled ``app=NAME`` unless told
otherwise. Quantities are Kubernetes' ("200m", "1Gi").
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.api import Object

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
# The image matters only on a cluster with real kubelets.
CONTAINER: Object = {"name": "main", "image": "busybox:stable", "command": ["sleep", "infinity"]}


LOCAL_STORAGE: Object = {"name": "scratch", "emptyDir": {}}


def claim_volume(claim: str) -> Object:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def pod(name: str, **template: Any) -> Object:
    made = _template(name, **template)
    return _object("v1", "Pod", name, made["metadata"], spec=made["spec"])


def deployment(name: str, replicas: int = 1, **template: Any) -> Object:
    return _workload("apps/v1", "Deployment", name, template, replicas=replicas)


def replicaset(name: str, replicas: int = 1, **template: Any) -> Object:
    return _workload("apps/v1", "ReplicaSet", name, template, replicas=replicas)


def statefulset(name: str, replicas: int = 1, **template: Any) -> Object:
    """A StatefulSet whose pods are started all at once."""
    fields = {"replicas": replicas, "serviceName": name, "podManagementPolicy": "Parallel"}
    return _workload("apps/v1", "StatefulSet", name, template, **fields)


def daemonset(name: str, **template: Any) -> Object:
    """A DaemonSet; one with a little use on every node gives every node figures in the metrics API."""
    return _workload("apps/v1", "DaemonSet", name, template)


def job(name: str, **template: Any) -> Object:
    """A Job that never tries again; kwok lets its pods succeed at once."""
    made = _template(name, **template)
    made["spec"]["restartPolicy"] = "Never"
    return _object("batch/v1", "Job", name, spec={"backoffLimit": 0, "template": made})


def pdb(
    name: str,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    labels: Mapping[str, str] | None = None,
    unhealthy: str = "",
) -> Object:
    """A PodDisruptionBudget for the pods of a workload of the same name, or for those with ``labels``."""
    spec: Object = {"selector": {"matchLabels": dict(labels or {"app": name})}}
    if min_available is not None:
        spec["minAvailable"] = min_available
    if max_unavailable is not None:
        spec["maxUnavailable"] = max_unavailable
    if unhealthy:
        spec["unhealthyPodEvictionPolicy"] = unhealthy
    return _object("policy/v1", "PodDisruptionBudget", name, spec=spec)


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str = "",
    taints: Sequence[Object] = (),
    labels: Mapping[str, str] | None = None,
    unschedulable: bool = False,
) -> Object:
    """A node of any size, all of it allocatable; kwok makes it Ready."""
    size = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
    where = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    metadata = {
        "labels": {**where, **({ZONE: zone} if zone else {}), **(labels or {})},
        "annotations": {"metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource"},
    }
    spec = {"taints": list(taints), "unschedulable": unschedulable}
    return _object("v1", "Node", name, metadata, spec=spec, status={"capacity": size, "allocatable": size})


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Object:
    return {"key": key, "value": value, "effect": effect}


def storage_class(name: str) -> Object:
    """A StorageClass whose claims wait for volumes made by hand."""
    return _object("storage.k8s.io/v1", "StorageClass", name, provisioner="kubernetes.io/no-provisioner")


def volume(name: str, storage_class: str, size: str = "1Gi") -> Object:
    """A PersistentVolume reachable from every node."""
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "hostPath": {"path": "/tmp"},
    }
    return _object("v1", "PersistentVolume", name, spec=spec)


def claim(name: str, storage_class: str, size: str = "1Gi") -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return _object("v1", "PersistentVolumeClaim", name, spec=spec)


def service_account(name: str) -> Object:
    return _object("v1", "ServiceAccount", name)


def _workload(api_version: str, kind: str, name: str, template: Object, **fields: object) -> Object:
    made = _template(name, **template)
    selector = {"matchLabels": made["metadata"]["labels"]}
    return _object(api_version, kind, name, spec={**fields, "selector": selector, "template": made})


def _object(api_version: str, kind: str, name: str, metadata: Object | None = None, **parts: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **parts}


def _template(
    name: str,
    *,
    cpu: str = "",
    memory: str = "",
    usage: str = "",  # CPU that the pod uses as kwok tells it, through metrics-server; "1m" when not given
    memory_usage: str = "",  # the same of memory; "1Mi" when not given
    node: str = "",  # the node the pods are bound to, past the scheduler
    on: str = "",  # the only node that the scheduler may take (a node affinity, as upstream's tests pin pods)
    affinity: Object | None = None,
    priority_class: str = "",
    grace: int = 1,
    volumes: Sequence[Object] = (),  # like `LOCAL_STORAGE`, or `claim_volume`
    labels: Mapping[str, str] | None = None,  # instead of ``app``
    annotations: Mapping[str, str] | None = None,
    **spec: Any,  # the rest of the PodSpec
) -> Object:
    told = {"usage.test/cpu": usage, "usage.test/memory": memory_usage}
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    requests = {key: quantity for key, quantity in (("cpu", cpu), ("memory", memory)) if quantity}
    affinity = dict(affinity or {})
    if on:
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [on]}]}
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "metadata": {
            "labels": dict(labels or {"app": name}),
            "annotations": {key: value for key, value in told.items() if value} | dict(annotations or {}),
        },
        "spec": {
            "containers": [{**CONTAINER, "resources": {"requests": requests}, "volumeMounts": mounts}],
            "volumes": list(volumes),
            "affinity": affinity,
            "terminationGracePeriodSeconds": grace,
            **({"nodeName": node} if node else {}),
            **({"priorityClassName": priority_class} if priority_class else {}),
            **spec,
        },
    }
