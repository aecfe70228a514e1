"""The permissions that examples/kubernetes/rbac.yaml ships are enough, and each one is needed."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.e2e.acts import names
from tests.e2e.api import Object
from tests.e2e.audit import Request
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for

SHIPPED: list[Object] = list(yaml.safe_load_all(Path("examples/kubernetes/rbac.yaml").read_text()))
ACCOUNT, ROLE, BINDING = SHIPPED
NAME, HOME = ACCOUNT["metadata"]["name"], ACCOUNT["metadata"]["namespace"]


class Permission(NamedTuple):
    """One thing that a rule allows."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """As the program names it: "list nodes", "create events.events.k8s.io"."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


def permissions(rules: list[Object]) -> list[Permission]:
    """All that rules allow."""
    return [
        Permission(*each)
        for rule in rules
        for each in itertools.product(rule["verbs"], rule["apiGroups"], rule["resources"])
    ]


def rules_for(granted: list[Permission]) -> list[Object]:
    """Rules that allow this and no more."""
    return [{"verbs": [verb], "apiGroups": [group], "resources": [resource]} for verb, group, resource in granted]


NEEDED = permissions(ROLE["rules"])
#: Only needed where the answer to an eviction was lost; nothing but a doubt comes of its absence.
LOOK = Permission("get", "", "pods")

#: Puts the shipped objects in place, with these rules, and returns the program with the ServiceAccount's token.
Granted = Callable[[list[Object]], Program]


@pytest.fixture
def granted(controlplane: ControlPlane, namespace: Namespace) -> Iterator[Granted]:
    """What rbac.yaml ships, as it ships it but for the rules."""
    controlplane.api.create(ACCOUNT, HOME)

    def grant(rules: list[Object]) -> Program:
        namespace.create({**ROLE, "rules": rules}, BINDING)
        given = permissions(rules)
        for each in NEEDED:
            wait_for(lambda each=each: allowed(controlplane, each) is (each in given), f"{each} in force")  # type: ignore[misc]  # bound early
        return Program(controlplane.kubeconfig_for(NAME, controlplane.api.token(NAME, HOME)))

    yield grant
    controlplane.api.delete("ServiceAccount", NAME, HOME)


@pytest.fixture
def demanding(metrics: ControlPlane, namespace: Namespace) -> Object:
    """A policy that needs every permission, in a namespace with two pods that should go."""
    namespace.create(node("a"), node("b"), daemonset("agent", usage="10m"), deployment("web", replicas=2))
    namespace.wait_ready(2, "web")
    gold = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "gold"}]}}
    evictor = {
        "namespaceLabelSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
        "priorityThreshold": {"name": "system-cluster-critical"},
        "podProtections": {"extraEnabled": ["PodsWithPVC"], "config": gold},
    }
    strategies: dict[str, Object] = {
        "PodLifeTime": {"states": ["Running"], "namespaces": {"include": [namespace.name]}},
        "LowNodeUtilization": {
            "thresholds": {"cpu": 50},
            "targetThresholds": {"cpu": 90},
            "metricsUtilization": {"source": "KubernetesMetrics"},
        },
    }
    return policy(strategies, evictor, metricsProviders=[{"source": "KubernetesMetrics"}])


def test_shipped_rules_suffice(
    metrics: ControlPlane, namespace: Namespace, granted: Granted, demanding: Object
) -> None:
    """With the shipped rules nothing is forbidden, each is used but the one for doubts, and Events are written."""
    program = granted(ROLE["rules"])
    wait_for(lambda: {"a", "b"} <= names(metrics.api.list("NodeMetrics")), "figures of both nodes", 90)
    start = metrics.audit_offset()

    outcome = program.run(demanding)

    requests = metrics.requests_since(start, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert outcome.errors() == {}
    assert not [request for request in requests if request.status >= 400]
    assert {used(request) for request in requests} == set(NEEDED) - {LOOK}
    events = [each for each in metrics.api.list("Event", namespace.name) if each["reason"] == "PodLifeTime"]
    assert {event["involvedObject"]["name"] for event in events} == set(outcome.evicted())


@pytest.mark.parametrize("missing", [each for each in NEEDED if each != LOOK], ids=str)
def test_missing_permission_is_named(
    namespace: Namespace, granted: Granted, demanding: Object, missing: Permission
) -> None:
    """Without one of them the message names verb and resource; Events and usage can be done without."""
    program = granted(rules_for([each for each in NEEDED if each != missing]))

    outcome = program.run(demanding)

    assert f"no permission to {missing}: " in outcome.stderr + json.dumps(outcome.report)
    assert "Traceback" not in outcome.stderr
    if missing.resource == "pods/eviction":
        assert (outcome.exit_code, outcome.evicted()) == (1, [])
    elif missing.resource == "events" or missing.group == "metrics.k8s.io":
        assert (outcome.exit_code, len(outcome.evicted())) == (0, 2)
    else:
        assert (outcome.exit_code, outcome.report) == (3, {})
    assert len(namespace.wait_ready(2, "web")) == 2


def used(request: Request) -> Permission:
    """The permission that a request took."""
    group = request.path.split("/")[2] if request.path.startswith("/apis/") else ""
    return Permission(request.verb, group, "/".join(filter(None, (request.resource, request.subresource))))


def allowed(controlplane: ControlPlane, permission: Permission) -> bool:
    """Whether the ServiceAccount has a permission, as the API server sees it."""
    resource, _, subresource = permission.resource.partition("/")
    asked = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
    user = f"system:serviceaccount:{HOME}:{NAME}"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = controlplane.api.request(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {**review, "spec": {"user": user, "resourceAttributes": asked}},
    )
    return bool(answer["status"]["allowed"])
