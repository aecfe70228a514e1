"""Random clusters as an API server holds them: all objects are well formed, and rules meet often.

Few names, labels and templates, so that pods are siblings, dislike each other and share PDBs; ages are whole days, so
that no answer hangs on when the test runs.
"""

from datetime import UTC, datetime
from random import Random
from typing import Any

from tests.functional.objects import DAY, node, node_usage, pdb, pod, pod_usage

Object = dict[str, Any]

ZONES = ("a", "b", "c")
NAMESPACES = ("default", "shop")
APPS = ("db", "web", "cache")
_SYSTEM_CRITICAL = 2_000_000_000
_TAINTS = (
    {"key": "k", "value": "v", "effect": "NoSchedule"},
    {"key": "k", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
)


def cluster(dice: Random) -> list[Object]:
    """Return nodes, pods, PDBs, namespaces and what metrics-server says."""
    nodes = [_node(dice, f"n{number}") for number in range(dice.randint(2, 8))]
    templates = [_template(dice) for _ in range(dice.randint(1, 5))]
    names = [each["metadata"]["name"] for each in nodes]
    crowded = dice.sample(names, 2)
    pods = [
        _pod(dice, f"p{number}", dice.choice(dice.choice((names, crowded))), dice.choice(templates))
        for number in range(dice.randint(1, 40))
    ]
    pdbs = [_pdb(dice, f"pdb{number}") for number in range(dice.randint(0, 4))]
    namespaces = [{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}} for name in NAMESPACES]
    return [*nodes, *pods, *pdbs, *namespaces, *_metrics(dice, nodes, pods)]


def _node(dice: Random, name: str) -> Object:
    taints = [dice.choice(_TAINTS)] if dice.random() < 1 / 5 else []
    made = node(name, ready=dice.random() < 9 / 10, taints=taints, cpu=dice.choice(("2", "4")))
    made["metadata"]["labels"] |= {"zone": dice.choice(ZONES), "disk": dice.choice(("ssd", "hdd"))}
    made["status"]["allocatable"] |= {"memory": "8Gi", "pods": dice.choice(("6", "110"))}
    if dice.random() < 1 / 10:
        made["spec"]["unschedulable"] = True
    return made


def _template(dice: Random) -> Object:
    """Return what replicas share: labels, owner and spec."""
    app = dice.choice(APPS)
    spec: Object = {"containers": [_container(dice)]}
    for key, value in _PECULIAR.items():
        if dice.random() < 1 / 8:
            spec[key] = value
    if dice.random() < 1 / 3:
        spec["affinity"] = _affinity(dice)
    if dice.random() < 1 / 3:
        spec["topologySpreadConstraints"] = [_spread(dice, app)]
    if dice.random() < 1 / 4:
        spec["volumes"] = [dice.choice(({"name": "v", "emptyDir": {}}, {"name": "v", "hostPath": {"path": "/x"}}))]
    return {
        "labels": {"app": app, "tier": dice.choice("xy")},
        "owner": dice.choice(("ReplicaSet",) * 6 + ("StatefulSet", "DaemonSet", "Job", "")),
        "spec": spec,
    }


_PECULIAR: Object = {
    "priority": _SYSTEM_CRITICAL,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "hostNetwork": True,
    "terminationGracePeriodSeconds": 0,
}


def _container(dice: Random) -> Object:
    amounts = {"cpu": dice.choice(("100m", "300m", "1")), "memory": dice.choice(("64Mi", "1Gi"))}
    resources = dice.choice(({"requests": amounts}, {"requests": amounts, "limits": amounts}, {}))
    return {"name": "main", "image": "web:1", "resources": resources}


def _affinity(dice: Random) -> Object:
    apart = {"topologyKey": dice.choice(("kubernetes.io/hostname", "zone")), "labelSelector": _selector(dice)}
    fast = {"matchExpressions": [{"key": "disk", "operator": dice.choice(("In", "NotIn")), "values": ["ssd"]}]}
    return dice.choice(
        (
            {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
            {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fast]}}},
            {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": fast}]}},
        )
    )


def _spread(dice: Random, app: str) -> Object:
    return {
        "maxSkew": dice.choice((1, 2)),
        "topologyKey": dice.choice(("zone", "kubernetes.io/hostname")),
        "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _selector(dice: Random) -> Object:
    return dice.choice(
        (
            {"matchLabels": {"app": dice.choice(APPS)}},
            {"matchExpressions": [{"key": "tier", "operator": dice.choice(("In", "NotIn")), "values": ["x"]}]},
            {"matchExpressions": [{"key": "app", "operator": dice.choice(("Exists", "DoesNotExist"))}]},
        )
    )


def _pod(dice: Random, name: str, node: str, template: Object) -> Object:
    phase = dice.choice(("Running",) * 7 + ("Pending", "Failed", "Succeeded"))
    made = pod(
        name,
        node,
        namespace=dice.choice(NAMESPACES),
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
    made = pdb(name, allowed=dice.randint(0, 3), namespace=dice.choice(NAMESPACES))
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
