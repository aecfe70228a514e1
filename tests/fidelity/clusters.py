"""Random clusters: nodes of several sizes in zones, with taints, labels and images; what pods are owned by.

Pods are each of some app, with a few of the wishes that pods may have.
"""

from random import Random
from typing import Any

from tests.e2e.api import Object
from tests.e2e.builders import HOSTNAME, ZONE, node, taint

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


KEYS = (HOSTNAME, ZONE, "rack")


def random_template(random: Random, app: int) -> Object:
    labels = {"app": f"app-{app}", "version": random.choice(("v1", "v2"))}
    spec: Object = {"containers": [_container(random, f"c{number}") for number in range(random.choice((1, 1, 2)))]}
    for chance, wish in _WISHES:
        if random.random() < chance:
            _merge(spec, wish(random, app))
    if "topologySpreadConstraints" in spec:
        spec["topologySpreadConstraints"] = _different(spec["topologySpreadConstraints"])
    return {"metadata": {"labels": labels}, "spec": spec}


def _different(constraints: list[Object]) -> list[Object]:
    """Leave out those that the API refuses: two of one kind over one key."""
    return list({(each["topologyKey"], each["whenUnsatisfiable"]): each for each in constraints}.values())


def _container(random: Random, name: str) -> Object:
    requests: dict[str, str] = {}
    if random.random() < 0.8:
        requests["cpu"] = random.choice(("0", "50m", "100m", "250m", "500m", "1", "1500m"))
    if random.random() < 0.8:
        requests["memory"] = random.choice(("0", "64Mi", "128Mi", "512Mi", "1Gi", "1500M"))
    if random.random() < 0.1:
        requests["ephemeral-storage"] = "1Gi"
    limits = {}
    if random.random() < 0.05:
        requests[GPU] = limits[GPU] = random.choice(("1", "2"))
    return {"name": name, "image": random.choice(tuple(IMAGES)), "resources": {"requests": requests, "limits": limits}}


def _merge(into: Object, wish: Object) -> None:
    for key, value in wish.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif isinstance(value, list) and isinstance(into.get(key), list):
            into[key] = [*into[key], *value]
        else:
            into[key] = value


def _tolerations(random: Random, _app: int) -> Object:
    choices: list[Object] = [
        {"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"},
        {"key": "soft-0", "operator": "Exists"},
        {"key": "soft-1", "operator": "Exists", "effect": "PreferNoSchedule"},
        {"key": "soft-2", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ]
    return {"tolerations": random.sample(choices, random.choice((1, 2)))}


def _node_selector(random: Random, _app: int) -> Object:
    return {"nodeSelector": {"tier": random.choice(TIERS)}}


def _node_terms(random: Random, _app: int) -> Object:
    expressions: list[Object] = [
        {"key": "tier", "operator": "In", "values": random.sample(TIERS, 2)},
        {"key": "rack", "operator": random.choice(("Exists", "DoesNotExist"))},
        {"key": ZONE, "operator": "NotIn", "values": [random.choice(ZONES)]},
    ]
    terms: list[Object] = [{"matchExpressions": random.sample(expressions, random.choice((1, 2)))}]
    if random.random() < 0.2:
        names = [f"node-{random.randrange(20):03}" for _ in range(3)]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in names]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def _preferred_nodes(random: Random, _app: int) -> Object:
    terms = [
        {
            "weight": random.choice((1, 10, 50, 100)),
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for key, value in random.sample([("tier", "gold"), ("tier", "silver"), ("rack", "r1"), (ZONE, "east")], 2)
    ]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def _spread(random: Random, app: int) -> Object:
    constraint: Object = {
        "maxSkew": random.choice((1, 1, 2, 3)),
        "topologyKey": random.choice(KEYS),
        "whenUnsatisfiable": random.choice(("DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway")),
        "labelSelector": {"matchLabels": {"app": f"app-{app}"}},
    }
    if random.random() < 0.3:
        constraint["matchLabelKeys"] = ["version"]
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and random.random() < 0.3:
        constraint["minDomains"] = random.choice((2, 4, 6))
    if random.random() < 0.3:
        constraint["nodeAffinityPolicy"] = random.choice(("Honor", "Ignore"))
    if random.random() < 0.3:
        constraint["nodeTaintsPolicy"] = random.choice(("Honor", "Ignore"))
    return {"topologySpreadConstraints": [constraint]}


def _two_spreads(random: Random, app: int) -> Object:
    return {"topologySpreadConstraints": [_spread(random, app)["topologySpreadConstraints"][0] for _ in range(2)]}


def _pod_term(random: Random, app: int) -> Object:
    term: Object = {
        "topologyKey": random.choice(KEYS),
        "labelSelector": {"matchLabels": {"app": f"app-{random.choice((app, random.randrange(APPS)))}"}},
    }
    scope = random.random()
    if scope < 0.15:
        term["namespaces"] = ["blue", "green"]
    elif scope < 0.3:
        term["namespaceSelector"] = random.choice(({}, {"matchLabels": {"team": "one"}}))
    if random.random() < 0.2:
        term[random.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["version"]
    return term


def _required_pods(kind: str) -> Any:
    return lambda random, app: {
        "affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [_pod_term(random, app)]}}
    }


def _preferred_pods(kind: str) -> Any:
    return lambda random, app: {
        "affinity": {
            kind: {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": random.choice((1, 5, 100)), "podAffinityTerm": _pod_term(random, app)}
                    for _ in range(random.choice((1, 2)))
                ]
            }
        }
    }


def _host_port(random: Random, _app: int) -> Object:
    port: Object = {"containerPort": 80, "hostPort": random.choice((8000, 8001))}
    if random.random() < 0.3:
        port["hostIP"] = random.choice(("127.0.0.1", "10.0.0.1"))
    if random.random() < 0.2:
        port["protocol"] = "UDP"
    return {"containers": [{"name": "port", "image": "registry.test/small:v1", "ports": [port]}]}


def _init_containers(random: Random, _app: int) -> Object:
    made = [_container(random, f"init{number}") for number in range(random.choice((1, 2, 3)))]
    for each in made:
        each["resources"]["limits"] = {}
        each["resources"]["requests"].pop(GPU, None)
        if random.random() < 0.5:
            each["restartPolicy"] = "Always"
    return {"initContainers": made}


def _pod_level(random: Random, _app: int) -> Object:
    return {"resources": {"requests": random.choice(({"cpu": "7"}, {"memory": "6Gi"}, {"cpu": "7", "memory": "6Gi"}))}}


_WISHES: tuple[tuple[float, Any], ...] = (
    (0.25, _tolerations),
    (0.15, _node_selector),
    (0.1, _node_terms),
    (0.25, _preferred_nodes),
    (0.2, _spread),
    (0.1, _two_spreads),
    (0.1, _required_pods("podAffinity")),
    (0.15, _required_pods("podAntiAffinity")),
    (0.15, _preferred_pods("podAffinity")),
    (0.15, _preferred_pods("podAntiAffinity")),
    (0.08, _host_port),
    (0.15, _init_containers),
    (0.08, _pod_level),
)
