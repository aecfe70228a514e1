"""Random clusters as an API server holds them, and policies: nodes and pods as `make fidelity` draws them, PDBs beside.

All objects are well formed, and rules meet often: few apps, so that pods are siblings, dislike each other and share
PDBs.  Ages are whole days, so that no answer hangs on when the test runs.
"""

from datetime import UTC, datetime
from random import Random
from typing import Any

import yaml

from tests.fidelity.clusters import NAMESPACES, random_nodes, random_template
from tests.functional.objects import DAY, node_usage, pdb, pod, pod_usage

Object = dict[str, Any]

APPS = range(3)
_NOT_READY = [{"type": "Ready", "status": "False"}]


def cluster(dice: Random) -> list[Object]:
    nodes = random_nodes(dice, dice.randint(2, 8))
    for each in nodes:
        each["status"]["conditions"] = _NOT_READY if dice.random() < 1 / 10 else []
    templates = [_template(dice) for _ in range(dice.randint(1, 5))]
    names = [each["metadata"]["name"] for each in nodes]
    crowded = dice.sample(names, 2)
    pods = [
        _pod(dice, f"p{number}", dice.choice(dice.choice((names, crowded))), dice.choice(templates))
        for number in range(dice.randint(1, 40))
    ]
    pdbs = [_pdb(dice, f"pdb{number}") for number in range(dice.randint(0, 4))]
    namespaces = [
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        for name, labels in NAMESPACES.items()
    ]
    return [*nodes, *pods, *pdbs, *namespaces, *_metrics(dice, nodes, pods)]


_PECULIAR: Object = {
    "priority": 2_000_000_000,
    "hostNetwork": True,
    "terminationGracePeriodSeconds": 0,
    "volumes": [{"name": "v", "emptyDir": {}}],
}


def _template(dice: Random) -> Object:
    """Return what replicas share: labels, owner and spec."""
    made = random_template(dice, dice.choice(APPS))
    peculiar = {key: value for key, value in _PECULIAR.items() if dice.random() < 1 / 8}
    kinds = ("ReplicaSet",) * 6 + ("StatefulSet", "DaemonSet", "Job", "")
    return {"labels": made["metadata"]["labels"], "owner": dice.choice(kinds), "spec": {**made["spec"], **peculiar}}


def _selector(dice: Random) -> Object:
    return dice.choice(
        (
            {"matchLabels": {"app": f"app-{dice.choice(APPS)}"}},
            {"matchExpressions": [{"key": "version", "operator": dice.choice(("In", "NotIn")), "values": ["v1"]}]},
            {"matchExpressions": [{"key": "app", "operator": dice.choice(("Exists", "DoesNotExist"))}]},
        )
    )


def _pod(dice: Random, name: str, node: str, template: Object) -> Object:
    phase = dice.choice(("Running",) * 7 + ("Pending", "Failed", "Succeeded"))
    made = pod(
        name,
        node,
        namespace=dice.choice(tuple(NAMESPACES)),
        age=dice.randint(1, 9) * DAY,
        owner=template["labels"]["app"] if template["owner"] else "",
        phase=phase,
        ready=phase == "Running" and dice.random() < 9 / 10,
        restarts=dice.choice((0, 0, 7, 200)),
        **template["spec"],
    )
    metadata = made["metadata"]
    metadata["labels"] = template["labels"]
    for each in metadata["ownerReferences"]:
        each |= {"kind": template["owner"], "uid": f"uid-{metadata['namespace']}-{each['name']}"}
    if phase == "Failed":
        made["status"]["reason"] = "Evicted"
    if dice.random() < 1 / 12:
        metadata["annotations"] = {dice.choice(_ANNOTATIONS): "true"}
    if dice.random() < 1 / 15:
        metadata["deletionTimestamp"] = metadata["creationTimestamp"]
    return made


_ANNOTATIONS = (
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "kubernetes.io/config.mirror",
)


def _pdb(dice: Random, name: str) -> Object:
    made = pdb(name, allowed=dice.randint(0, 3), namespace=dice.choice(tuple(NAMESPACES)))
    made["spec"]["selector"] = _selector(dice)
    made["status"] |= {
        "observedGeneration": dice.choice((1, 1, 1, 0)),
        "currentHealthy": dice.randint(0, 5),
        "desiredHealthy": dice.randint(0, 5),
    }
    return made


def _metrics(dice: Random, nodes: list[Object], pods: list[Object]) -> list[Object]:
    now = {"timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "window": "15s"}
    used = {each["metadata"]["name"]: dice.choice((10, 200, 900)) for each in pods}
    found = [pod_usage(name, f"{cpu}m", **now) for name, cpu in used.items()]
    for each, measured in zip(pods, found, strict=True):
        measured["metadata"]["namespace"] = each["metadata"]["namespace"]
    for name in (each["metadata"]["name"] for each in nodes):
        there = [each["metadata"]["name"] for each in pods if each["spec"]["nodeName"] == name]
        found.append(node_usage(name, f"{sum(used[each] for each in there)}m", **now))
    return found


_STRATEGIES = [
    (point, name, args)
    for point, strategies in yaml.safe_load("""
deschedule:
  PodLifeTime: [{maxPodLifeTimeSeconds: 200000}, {states: [Pending, Failed]}]
  RemoveFailedPods: [{minPodLifetimeSeconds: 60}, {reasons: [Evicted]}]
  RemovePodsHavingTooManyRestarts: [{podRestartThreshold: 5}, {podRestartThreshold: 100}]
  RemovePodsViolatingNodeTaints: [{}, {includePreferNoSchedule: true}]
  RemovePodsViolatingNodeAffinity:
    - nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]
    - nodeAffinityType: [preferredDuringSchedulingIgnoredDuringExecution]
  RemovePodsViolatingInterPodAntiAffinity: [{}]
balance:
  RemoveDuplicates: [{}, {excludeOwnerKinds: [Job]}]
  RemovePodsViolatingTopologySpreadConstraint:
    - constraints: [DoNotSchedule, ScheduleAnyway]
    - topologyBalanceNodeFit: false
  LowNodeUtilization:
    - {thresholds: {cpu: 20, pods: 30}, targetThresholds: {cpu: 40, pods: 50}}
    - thresholds: {cpu: 30}
      targetThresholds: {cpu: 50}
      metricsUtilization: &usage {source: KubernetesMetrics, selection: relief}
    - {thresholds: {cpu: 10}, targetThresholds: {cpu: 10}, useDeviationThresholds: true, metricsUtilization: *usage}
  HighNodeUtilization:
    - thresholds: {cpu: 40}
    - {thresholds: {cpu: 40}, metricsUtilization: *usage}
    - {thresholds: {cpu: 60}, selection: compaction, keepFree: {cpu: 5}}
""").items()
    for name, args in strategies.items()
]
_EVICTOR: tuple[Object, ...] = (
    {"nodeFit": True},
    {"minReplicas": 3},
    {"minPodAge": "48h"},
    {"labelSelector": {"matchLabels": {"version": "v1"}}},
    {"noEvictionPolicy": "Mandatory"},
    {"priorityThreshold": {"value": 10}},
    {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage", "DaemonSetPods", "FailedBarePods"]}},
    {"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}},
)


def policy(dice: Random) -> Object:
    limits = {
        f"maxNoOfPodsToEvict{each}": dice.randint(0, 6)
        for each in ("PerNode", "PerNamespace", "Total")
        if dice.random() < 1 / 2
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "KubernetesMetrics"}],
        **limits,
        "profiles": [_profile(dice, f"profile{number}") for number in range(dice.choice((1, 1, 2)))],
    }


def _profile(dice: Random, name: str) -> Object:
    chosen = dice.sample(_STRATEGIES, dice.randint(1, 4))
    evictor = {key: value for each in dice.sample(_EVICTOR, dice.randint(0, 3)) for key, value in each.items()}
    configs = [{"name": strategy, "args": dice.choice(args)} for _, strategy, args in chosen]
    points = {
        point: {"enabled": [strategy for where, strategy, _ in chosen if where == point]}
        for point in ("deschedule", "balance")
    }
    return {"name": name, "pluginConfig": [{"name": "DefaultEvictor", "args": evictor}, *configs], "plugins": points}
