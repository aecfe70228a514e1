"""Prints the example cluster: a shop on twelve nodes whose requests say nothing about load.

Four nodes were drained for maintenance a while ago and stand nearly empty; the others took their pods and run hot.
There are the usual leftovers too: pods on a node that got a taint, failed batch jobs, a service that keeps crashing,
pods that have not been restarted for months.  The output is what `kubectl get -o json` would print, figures of the
metrics API included, and the same every time.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
ZONES = ("eu-1a", "eu-1b", "eu-1c")
HOT, IDLE = range(1, 9), range(9, 13)

Object = dict[str, Any]


def ago(**since: float) -> str:
    return (NOW - timedelta(**since)).isoformat().replace("+00:00", "Z")


def metadata(kind: str, name: str, namespace: str | None = None, **fields: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "uid": f"{kind}-{namespace or 'cluster'}-{name}".lower(), **fields}


def node(number: int) -> Object:
    name = f"node-{number:02d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": ZONES[number % 3]}
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if number == 8 else []
    room = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata("Node", name, labels=labels, creationTimestamp=ago(days=200)),
        "spec": {"taints": taints} if taints else {},
        "status": {
            "capacity": {**room, "cpu": "8200m"},
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": f"10.0.0.{number}"}],
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastHeartbeatTime": ago(seconds=5),
                    "lastTransitionTime": ago(days=20),
                }
            ],
        },
    }


class Workloads:
    """Collects pods and their figures."""

    def __init__(self) -> None:
        self.pods: list[Object] = []
        self.metrics: list[Object] = []
        self.usage: dict[str, list[int]] = {f"node-{number:02d}": [300, 2048] for number in range(1, 13)}

    def add(
        self,
        namespace: str,
        name: str,
        on: int,
        *,
        cpu: int,
        memory: int,
        uses: tuple[int, int],
        owner: tuple[str, str],
        days: float = 6,
        priority: int = 0,
        phase: str = "Running",
        restarts: int = 0,
        waiting: str = "",
        volumes: list[Object] | None = None,
    ) -> None:
        """Add a pod; cpu in millicores, memory in MiB, `uses` what it really takes of both."""
        state: Object = {"waiting": {"reason": waiting}} if waiting else {"running": {"startedAt": ago(days=days)}}
        if phase == "Failed":
            state = {"terminated": {"reason": "Error", "exitCode": 1}}
        running = phase == "Running"
        self.pods.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata(
                    "Pod",
                    name,
                    namespace,
                    labels={"app": owner[1]},
                    creationTimestamp=ago(days=days),
                    ownerReferences=[
                        {
                            "apiVersion": "apps/v1",
                            "kind": owner[0],
                            "name": owner[1],
                            "uid": f"{owner[0]}-{namespace}-{owner[1]}".lower(),
                            "controller": True,
                        }
                    ],
                ),
                "spec": {
                    "nodeName": f"node-{on:02d}",
                    "priority": priority,
                    "containers": [
                        {
                            "name": "main",
                            "image": f"registry.example/{namespace}/{owner[1]}:1.4",
                            "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}},
                        }
                    ],
                    "volumes": volumes or [],
                    "tolerations": [{"operator": "Exists"}] if owner[0] == "DaemonSet" else [],
                },
                "status": {
                    "phase": phase,
                    "qosClass": "Burstable",
                    "startTime": ago(days=days),
                    "conditions": [
                        {"type": "Ready", "status": str(running and not waiting), "lastTransitionTime": ago(days=days)}
                    ],
                    "containerStatuses": [{"name": "main", "restartCount": restarts, "state": state}],
                },
            }
        )
        if running:
            self._measure(namespace, name, f"node-{on:02d}", uses)

    def _measure(self, namespace: str, name: str, on: str, uses: tuple[int, int]) -> None:
        self.usage[on][0] += uses[0]
        self.usage[on][1] += uses[1]
        self.metrics.append(
            {
                "apiVersion": "metrics.k8s.io/v1beta1",
                "kind": "PodMetrics",
                "metadata": metadata("PodMetrics", name, namespace),
                "timestamp": ago(seconds=20),
                "window": "15s",
                "containers": [{"name": "main", "usage": {"cpu": f"{uses[0]}m", "memory": f"{uses[1]}Mi"}}],
            }
        )

    def node_metrics(self) -> list[Object]:
        return [
            {
                "apiVersion": "metrics.k8s.io/v1beta1",
                "kind": "NodeMetrics",
                "metadata": metadata("NodeMetrics", name),
                "timestamp": ago(seconds=20),
                "window": "15s",
                "usage": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
            }
            for name, (cpu, memory) in self.usage.items()
        ]


def fill(work: Workloads) -> None:
    """Add the shop's pods."""
    for number in (*HOT, *IDLE):
        work.add(
            "kube-system", f"agent-{number:02d}", number,
            cpu=100, memory=128, uses=(60, 90), owner=("DaemonSet", "agent"), priority=2_000_001_000,
        )  # fmt: skip
    replica = 0
    for service, replicas, cpu, memory, uses in (
        ("web", 24, 300, 512, (980, 900)),
        ("api", 24, 500, 1024, (390, 700)),
        ("search", 12, 400, 2048, (1150, 4800)),
        ("cart", 9, 200, 256, (180, 300)),
    ):
        for index in range(replicas):
            replica += 1
            work.add(
                "shop", f"{service}-7c9d{index:02d}", 1 + (replica * 3 + replica // 8) % 8,
                cpu=cpu, memory=memory, uses=uses, owner=("ReplicaSet", f"{service}-7c9d"), days=2 + index % 5,
            )  # fmt: skip
    for index in range(3):
        work.add(
            "shop", f"orders-db-{index}", 1 + index, cpu=1000, memory=4096, uses=(450, 3500),
            owner=("StatefulSet", "orders-db"), days=90, priority=1000,
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": f"data-orders-db-{index}"}}],
        )  # fmt: skip
        work.add(
            "batch", f"nightly-{index}", 4 + index, cpu=500, memory=512, uses=(0, 0),
            owner=("Job", f"nightly-{index}"), days=1 + index, phase="Failed",
        )  # fmt: skip
        work.add(
            "shop", f"mailer-5f6b{index}", 2 + index, cpu=100, memory=128, uses=(20, 60), days=3,
            owner=("ReplicaSet", "mailer-5f6b"), restarts=140 + index, waiting="CrashLoopBackOff",
        )  # fmt: skip
        work.add(
            "tools", f"wiki-84c{index}", 5 + index, cpu=200, memory=1024, uses=(90, 1500), days=120,
            owner=("ReplicaSet", "wiki-84c"),
            volumes=[{"name": "cache", "emptyDir": {}}] if index == 0 else [],
        )  # fmt: skip


def budget(service: str, allowed: int, healthy: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("PodDisruptionBudget", service, "shop", generation=1),
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": f"{service}-7c9d"}}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": healthy - allowed,
            "expectedPods": healthy,
            "observedGeneration": 1,
        },
    }


def claim(index: int) -> Object:
    name = f"data-orders-db-{index}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(
            "PersistentVolumeClaim", name, "shop", annotations={"pv.kubernetes.io/bind-completed": "yes"}
        ),
        "spec": {
            "storageClassName": "fast",
            "volumeName": f"volume-{index}",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }


def volume(index: int) -> Object:
    """The volume of a claim, in the zone of the node that its pod runs on."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [ZONES[(1 + index) % 3]]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": metadata("PersistentVolume", f"volume-{index}"),
        "spec": {
            "storageClassName": "fast",
            "capacity": {"storage": "100Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "shop", "name": f"data-orders-db-{index}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}},
        },
        "status": {"phase": "Bound"},
    }


def owners(pods: list[Object]) -> dict[tuple[str, str], Object]:
    """What looks after the pods, by kind and uid, each with the template that they were made from."""
    found: dict[tuple[str, str], Object] = {}
    for pod in pods:
        (reference,) = pod["metadata"]["ownerReferences"]
        key = (reference["kind"], reference["uid"])
        owner = found.setdefault(key, _owner(pod, reference))
        for group, count in (("spec", "replicas"), ("status", "replicas")):
            if reference["kind"] in ("ReplicaSet", "StatefulSet"):
                owner[group][count] = owner[group].get(count, 0) + 1
    return found


def _owner(pod: Object, reference: Object) -> Object:
    kind, labels = reference["kind"], pod["metadata"]["labels"]
    left_out = ("nodeName", "priority", "volumes") if kind == "StatefulSet" else ("nodeName", "priority")
    spec = {key: value for key, value in pod["spec"].items() if key not in left_out}
    place = metadata(kind, reference["name"], pod["metadata"]["namespace"], generation=1)
    ended = {"conditions": [{"type": "Failed", "status": "True"}]}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {**place, "uid": reference["uid"]},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
        "status": ended if kind == "Job" else {"observedGeneration": 1},
    }


def empty_lists() -> list[Object]:
    """Kinds of which there is nothing, which is not the same as kinds that were not read."""
    kinds = {
        "v1": ("Service", "ReplicationController"),
        "apps/v1": ("Deployment",),
        "storage.k8s.io/v1": ("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
        "autoscaling/v2": ("HorizontalPodAutoscaler",),
    }
    return [
        {"apiVersion": version, "kind": f"{kind}List", "items": []}
        for version, names in kinds.items()
        for kind in names
    ]


def main() -> None:
    """Print the cluster as one List."""
    work = Workloads()
    fill(work)
    namespaces = ("kube-system", "shop", "batch", "tools")
    items = [
        *(node(number) for number in (*HOT, *IDLE)),
        *work.pods,
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata("Namespace", name)} for name in namespaces),
        *(budget(service, allowed, healthy) for service, allowed, healthy in (("web", 4, 24), ("search", 2, 12))),
        *(claim(index) for index in range(3)),
        *(volume(index) for index in range(3)),
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata("StorageClass", "fast")},
        *(owner for (kind, _), owner in owners(work.pods).items() if kind != "DaemonSet"),
        *empty_lists(),
        *work.node_metrics(),
        *work.metrics,
    ]
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
