"""The permissions that examples/kubernetes/rbac.yaml ships are enough, and each one is needed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.api import Object
from tests.e2e.builders import deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in
from tests.e2e.waiting import wait_for

SHIPPED: list[Object] = list(yaml.safe_load_all(Path("examples/kubernetes/rbac.yaml").read_text()))
ACCOUNT, ROLE, BINDING = SHIPPED
NAME, HOME = ACCOUNT["metadata"]["name"], ACCOUNT["metadata"]["namespace"]
# Each permission that a rule gives, as the program names it: "list nodes", "create events.events.k8s.io".
PERMISSIONS = [
    (rule, f"{verb} {resource}" + (f".{rule['apiGroups'][0]}" if rule["apiGroups"][0] else ""))
    for rule in ROLE["rules"]
    for resource in rule["resources"]
    for verb in rule["verbs"]
]

#: Puts the shipped objects in place, with these rules, and returns the program with the ServiceAccount's token.
Granted = Callable[[list[Object]], Program]


@pytest.fixture
def granted(controlplane: ControlPlane, namespace: Namespace) -> Iterator[Granted]:
    """What rbac.yaml ships, as it ships it but for the rules."""
    controlplane.api.create(ACCOUNT, HOME)

    def grant(rules: list[Object]) -> Program:
        namespace.create({**ROLE, "rules": rules}, BINDING)
        for rule in ROLE["rules"]:
            wait_for(lambda rule=rule: allowed(controlplane, rule) is (rule in rules), f"{rule} in force")  # type: ignore[misc]  # bound early
        return Program(controlplane.kubeconfig_for(NAME, controlplane.api.token(NAME, HOME)))

    yield grant
    controlplane.api.delete("ServiceAccount", NAME, HOME)


@pytest.fixture
def demanding(namespace: Namespace) -> Object:
    """A policy that needs every permission, in a namespace with two pods that should go."""
    namespace.create(node("a"), node("b"), deployment("web", replicas=2))
    namespace.wait_ready(2, "web")
    gold = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "gold"}]}}
    evictor = {
        "namespaceLabelSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
        "priorityThreshold": {"name": "system-cluster-critical"},
        "podProtections": {"extraEnabled": ["PodsWithPVC"], "config": gold},
    }
    return everything_in(namespace.name, evictor)


def test_shipped_rules_suffice(
    controlplane: ControlPlane, namespace: Namespace, granted: Granted, demanding: Object
) -> None:
    """Under the shipped ServiceAccount nothing is forbidden, each permission is used, and Events are written."""
    program = granted(ROLE["rules"])
    start = controlplane.audit_offset()

    outcome = program.run(demanding)

    requests = controlplane.requests_since(start, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert outcome.errors() == {}
    assert not [request for request in requests if request.status >= 400]
    used = {(request.verb, request.resource, request.subresource) for request in requests}
    assert used == {
        (verb, *(resource.split("/") if "/" in resource else (resource, "")))
        for rule in ROLE["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    events = [each for each in controlplane.api.list("Event", namespace.name) if each["reason"] == "PodLifeTime"]
    assert {event["involvedObject"]["name"] for event in events} == set(outcome.evicted())


@pytest.mark.parametrize(("rule", "permission"), PERMISSIONS, ids=[permission for _, permission in PERMISSIONS])
def test_missing_permission_is_named(
    namespace: Namespace, granted: Granted, demanding: Object, rule: Object, permission: str
) -> None:
    """Without one of the rules the message names verb and resource; only Events can be done without."""
    program = granted([each for each in ROLE["rules"] if each != rule])

    outcome = program.run(demanding)

    assert f"no permission to {permission}: " in outcome.stderr + json.dumps(outcome.report)
    assert "Traceback" not in outcome.stderr
    if permission.startswith("list"):
        assert (outcome.exit_code, outcome.report) == (3, {})
    elif permission == "create pods/eviction":
        assert (outcome.exit_code, outcome.evicted()) == (1, [])
    else:
        assert (outcome.exit_code, len(outcome.evicted())) == (0, 2)
    assert len(namespace.wait_ready(2, "web")) == 2


def allowed(controlplane: ControlPlane, rule: Object) -> bool:
    """Whether the ServiceAccount has the permissions of a rule, as the API server sees it."""
    resource, _, subresource = rule["resources"][0].partition("/")
    asked = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": resource, "subresource": subresource}
    user = f"system:serviceaccount:{HOME}:{NAME}"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    answer = controlplane.api.request(
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {**review, "spec": {"user": user, "resourceAttributes": asked}},
    )
    return bool(answer["status"]["allowed"])
