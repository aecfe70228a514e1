"""A cluster of a size that people have, as `kubectl get -o json` prints it: the same every time."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

Object = dict[str, Any]

NOW = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
ZONES = 3
REPLICAS = 15

#: How many objects make the two kinds of odd ones: nodes with a taint, pods that restart or have failed.
EVERY_TAINTED_NODE = 20
EVERY_ODD_POD = 50


#: Returns the number of the node of a pod, given the pod's number and how many nodes there are.
Layout = Callable[[int, int], int]


def cluster(nodes: int, pods: int, layout: str = "uneven") -> Object:
    """Return a List of so many nodes, pods of Deployments, their PDBs and the namespaces."""
    place = LAYOUTS[layout]
    services = range(pods // REPLICAS)
    items = [_node(number) for number in range(nodes)]
    items += [_pod(number, place(number, nodes)) for number in range(pods)]
    items += [_pdb(service) for service in services]
    items += [_object("v1", "Namespace", namespace) for namespace in sorted({_namespace(each) for each in services})]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _place(number: int, nodes: int) -> int:
    """Return a node: the first half of them is three times as full as the second."""
    half = nodes // 2
    return number % half if number % 4 else half + (number // 4) % (nodes - half)


LAYOUTS: Mapping[str, Layout] = {
    "uneven": _place,
    "even": lambda number, nodes: number % nodes,
    "half empty": lambda number, nodes: number % (nodes // 2),
}


def _ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _object(version: str, kind: str, name: str, namespace: str | None = None, **metadata: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    uid = f"{kind}-{namespace or ''}-{name}".lower()
    own = {"name": name, **place, "uid": uid, "resourceVersion": "4711", "creationTimestamp": _ago(2000)}
    return {"apiVersion": version, "kind": kind, "metadata": {**own, **metadata}}


def _namespace(service: int) -> str:
    return f"team-{service % 10}"


#: What all nodes, and all pods, have alike.
_NODE: Object = yaml.safe_load("""
capacity: &room {cpu: "16", memory: 64Gi, pods: "110", ephemeral-storage: 200Gi}
allocatable: *room
""")
_SPEC: Object = yaml.safe_load("""
priority: 0
serviceAccountName: default
volumes: [{name: kube-api-access, projected: {defaultMode: 420, sources: [{downwardAPI: {}}]}}]
tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
""")
_CONTAINER: Object = yaml.safe_load("""
name: main
livenessProbe: &probe {httpGet: {path: /healthz, port: 8080, scheme: HTTP}, periodSeconds: 10}
readinessProbe: *probe
ports: [{containerPort: 8080, protocol: TCP}]
volumeMounts: [{mountPath: /var/run/secrets, name: kube-api-access, readOnly: true}]
""")
_CONTAINER["env"] = [{"name": f"SETTING_{each}", "value": "some value of usual length"} for each in range(12)]
_ZONED = {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "Exists"}]}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _node(number: int) -> Object:
    name = f"node-{number:03d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    taints = [] if number % EVERY_TAINTED_NODE else [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    images = [{"names": [f"registry.example/app-{each}:1"], "sizeBytes": 100_000_000} for each in range(30)]
    conditions = [
        {"type": each, "status": str(each == "Ready"), "lastHeartbeatTime": _ago(0), "reason": f"Kubelet{each}"}
        for each in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    return _object("v1", "Node", name, labels=labels) | {
        "spec": {"providerID": f"cloud://{name}", "taints": taints},
        "status": {**_NODE, "conditions": conditions, "images": images},
    }


def _pdb(service: int) -> Object:
    healthy = {"currentHealthy": REPLICAS, "desiredHealthy": REPLICAS - 3, "expectedPods": REPLICAS}
    return _object("policy/v1", "PodDisruptionBudget", f"app-{service}", _namespace(service), generation=1) | {
        "spec": {"minAvailable": "80%", "selector": {"matchLabels": {"app": f"app-{service}"}}},
        "status": {"disruptionsAllowed": 3, **healthy, "observedGeneration": 1},
    }


def _pod(number: int, node: int) -> Object:
    service, replica = divmod(number, REPLICAS)
    odd = number % EVERY_ODD_POD == 0
    name, uid = f"app-{service}-6c9d", f"replicaset-{service}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "controller": True, "uid": uid}
    metadata = {
        "generateName": f"{name}-",
        "labels": {"app": f"app-{service}", "pod-template-hash": "6c9d", "tier": f"tier-{service % 4}"},
        "annotations": {"prometheus.io/scrape": "true", "checksum/config": "0123456789abcdef" * 4},
        "ownerReferences": [owner | {"blockOwnerDeletion": True}],
        "creationTimestamp": _ago(number % 500),
    }
    return _object("v1", "Pod", f"{name}-{replica:05d}", _namespace(service), **metadata) | {
        "spec": _spec(service, f"node-{node:03d}"),
        "status": _status(number, failed=odd and number % 3 == 0),
    }


def _spec(service: int, node: str) -> Object:
    selector = {"matchLabels": {"app": f"app-{service}"}}
    apart = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}] if service % 10 == 0 else []
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    amounts = {"requests": {"cpu": f"{100 + 10 * (service % 30)}m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    return {
        **_SPEC,
        "nodeName": node,
        "containers": [{**_CONTAINER, "image": f"registry.example/app-{service}:1", "resources": amounts}],
        "affinity": {
            "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [_ZONED]}},
            "podAntiAffinity": {_REQUIRED: apart},
        },
        "topologySpreadConstraints": [{**spread, "labelSelector": selector}],
    }


def _status(number: int, *, failed: bool) -> Object:
    started = _ago(number % 500)
    state = {"terminated": {"exitCode": 1, "reason": "Error"}} if failed else {"running": {"startedAt": started}}
    restarts = {"ready": not failed, "restartCount": 0 if number % EVERY_ODD_POD else 200, "state": state}
    return {
        "phase": "Failed" if failed else "Running",
        "podIP": f"10.{number % 200}.0.1",
        "startTime": started,
        "qosClass": "Burstable",
        "conditions": [
            {"type": each, "status": str(not failed), "lastTransitionTime": started}
            for each in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "containerStatuses": [{"name": "main", "image": "registry.example/app:1", **restarts}],
    }
