"""Random clusters: nodes of several sizes in zones, with taints, labels and images; what pods are owned by."""

from random import Random

from tests.e2e.api import Object
from tests.e2e.builders import node, taint

ZONES = ("east", "west", "north", "south")
TIERS = ("gold", "silver", "bronze")
IMAGES = {"registry.test/small:v1": 30 << 20, "registry.test/middle:v1": 300 << 20, "registry.test/large": 1400 << 20}
NAMESPACES = {"blue": {"team": "one"}, "green": {"team": "two"}, "red": {}}
GPU = "example.com/gpu"
APPS = 12


def random_nodes(random: Random, count: int) -> list[Object]:
    """Return manifests of nodes; some have no zone where others have."""
    zones = ZONES[: random.choice((0, 1, 2, 3, 4))]
    unzoned = random.choice((0.0, 0.0, 0.15))
    return [_node(random, f"node-{number:03}", zones, unzoned) for number in range(count)]


def _node(random: Random, name: str, zones: tuple[str, ...], unzoned: float) -> Object:
    made = node(
        name,
        cpu=random.choice(("2", "4", "7900m", "16")),
        memory=random.choice(("4Gi", "8Gi", "15872Mi", "65Gi")),
        pods=random.choice((8, 20, 110)),
        zone=random.choice(zones) if zones and random.random() >= unzoned else "",
        taints=_taints(random),
        labels={"tier": random.choice(TIERS), **({"rack": f"r{random.randrange(5)}"} if random.random() < 0.8 else {})},
        unschedulable=random.random() < 0.04,
    )
    if random.random() < 0.2:
        for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
            amounts[GPU] = random.choice(("1", "4", "8"))
    made["status"]["images"] = [
        {"names": [image if ":" in image else f"{image}:latest"], "sizeBytes": size}
        for image, size in IMAGES.items()
        if random.random() < 0.5
    ]
    return made


def _taints(random: Random) -> list[Object]:
    soft = [taint(f"soft-{number}", "x", "PreferNoSchedule") for number in range(3) if random.random() < 0.15]
    hard = [taint("dedicated", random.choice(("db", "web")), "NoSchedule")] if random.random() < 0.1 else []
    dying = [taint("spot", effect="NoExecute")] if random.random() < 0.05 else []
    return [*soft, *hard, *dying]


def owners(random: Random) -> list[Object]:
    """Services and ReplicaSets of the apps, in every namespace; not every app has both.

    No controller works while pods are placed, so that the owners need not be what their pods look like.
    """
    made: list[Object] = []
    for app in range(APPS):
        if random.random() < 0.5:
            made.append(service(app))
        made.append(_owner(("ReplicaSet", "StatefulSet")[app % 2], f"app-{app}", {"app": f"app-{app}"}))
    return made


def service(app: int) -> Object:
    spec = {"selector": {"app": f"app-{app}"}, "ports": [{"port": 80, "targetPort": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"app-{app}"}, "spec": spec}


def _owner(kind: str, name: str, labels: dict[str, str]) -> Object:
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "registry.test/small:v1"}]},
    }
    spec: Object = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
