"""The permissions that the chart computes from a policy are enough, and each one is needed."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.chart.helm import needed, one, template
from tests.e2e.acts import names, set_restarts
from tests.e2e.api import Object
from tests.e2e.audit import Request
from tests.e2e.binaries import found
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for

pytestmark = needed

NAME, HOME = "rebalancer", "kube-system"
LONG_AGO = "2020-01-01T00:00:00Z"


class Permission(NamedTuple):
    """One thing that a rule allows."""

    verb: str
    group: str
    resource: str

    def __str__(self) -> str:
        """As the program names it: "list nodes", "create events.events.k8s.io"."""
        return f"{self.verb} {self.resource}" + (f".{self.group}" if self.group else "")


#: For a pod of which it is in doubt whether it was evicted; and for a Lease, where the program takes one.
NOT_ALWAYS = {
    Permission("get", "", "pods"),
    *(Permission(verb, "coordination.k8s.io", "leases") for verb in ("create", "get", "update")),
}


def demanding() -> Object:
    """A policy that needs everything that can be needed."""
    gold = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "gold"}]}}
    evictor = {
        "namespaceLabelSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
        "priorityThreshold": {"name": "system-cluster-critical"},
        "podProtections": {"extraEnabled": ["PodsWithPVC"], "config": gold},
    }
    usage = {
        "thresholds": {"cpu": 50},
        "targetThresholds": {"cpu": 90},
        "metricsUtilization": {"source": "KubernetesMetrics"},
    }
    strategies: dict[str, Object] = {
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
        "LowNodeUtilization": usage,
    }
    return policy(strategies, evictor, metricsProviders=[{"source": "KubernetesMetrics"}])


def old() -> Object:
    """A policy of the older schema, which names a PriorityClass."""
    restarts = {"podsHavingTooManyRestarts": {"podRestartThreshold": 100}}
    params = {**restarts, "thresholdPriorityClassName": "system-cluster-critical"}
    strategies = {"RemovePodsHavingTooManyRestarts": {"enabled": True, "params": params}}
    return {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy", "strategies": strategies}


POLICIES = {
    "safe": yaml.safe_load(Path("policies/presets/safe.yaml").read_text()),
    "demanding": demanding(),
    "old": old(),
}
RENDERED = {
    name: template({"policy": {"text": json.dumps(each)}}) if found("helm") else [] for name, each in POLICIES.items()
}


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


NEEDED = {
    name: permissions(one(rendered, "ClusterRole")["rules"]) if rendered else [] for name, rendered in RENDERED.items()
}

#: Puts in place what the chart renders for a policy, with these rules; returns the program with the account's token.
Granted = Callable[[str, list[Object]], Program]


@pytest.fixture
def granted(controlplane: ControlPlane, namespace: Namespace) -> Iterator[Granted]:
    """The account, its roles and their bindings, as rendered but for the rules."""
    api = controlplane.api
    api.create(one(RENDERED["safe"], "ServiceAccount"), HOME)

    def grant(name: str, rules: list[Object]) -> Program:
        rendered = RENDERED[name]
        namespace.create({**one(rendered, "ClusterRole"), "rules": rules}, one(rendered, "ClusterRoleBinding"))
        given = permissions(rules)
        for each in NEEDED[name]:
            wait_for(lambda each=each: allowed(controlplane, each) is (each in given), f"{each} in force")  # type: ignore[misc]  # bound early
        return Program(controlplane.kubeconfig_for(NAME, api.token(NAME, HOME)))

    for kind in ("Role", "RoleBinding"):
        api.create(one(RENDERED["safe"], kind), HOME)
    yield grant
    for kind, name in (("ServiceAccount", NAME), ("Role", f"{NAME}-lease"), ("RoleBinding", f"{NAME}-lease")):
        api.delete(kind, name, HOME)


@pytest.fixture
def crashing(metrics: ControlPlane, namespace: Namespace) -> Namespace:
    """A namespace with two old pods that crash on and on, and that have somewhere else to go."""
    namespace.create(node("a"), node("b"), daemonset("agent", usage="10m"), deployment("web", replicas=2))
    set_restarts(namespace, namespace.wait_ready(2, "web"), restarts=150)
    for pod in namespace.pods():
        namespace.set_pod_status(pod["metadata"]["name"], {"startTime": LONG_AGO})
    return namespace


@pytest.mark.parametrize("name", POLICIES)
def test_computed_rules_suffice(metrics: ControlPlane, crashing: Namespace, granted: Granted, name: str) -> None:
    """Under the ServiceAccount nothing is forbidden, each permission is used, and Events are written."""
    program = granted(name, one(RENDERED[name], "ClusterRole")["rules"])
    wait_for(lambda: {"a", "b"} <= names(metrics.api.list("NodeMetrics")), "figures of both nodes", 90)
    start = metrics.audit_offset()

    outcome = program.run(POLICIES[name])

    requests = metrics.requests_since(start, user=f"system:serviceaccount:{HOME}:{NAME}")
    used_ones = {used(request) for request in requests}
    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert outcome.errors() == {}
    assert not [request for request in requests if request.status in {401, 403}]
    assert used_ones - NOT_ALWAYS == set(NEEDED[name]) - NOT_ALWAYS
    reason = "RemovePodsHavingTooManyRestarts"
    events = [each for each in metrics.api.list("Event", crashing.name) if each["reason"] == reason]
    assert {event["involvedObject"]["name"] for event in events} == set(outcome.evicted())


@pytest.mark.parametrize(
    ("name", "missing"),
    [(name, each) for name, needed in NEEDED.items() for each in needed if each not in NOT_ALWAYS],
    ids=str,
)
def test_missing_permission_is_named(crashing: Namespace, granted: Granted, name: str, missing: Permission) -> None:
    """Without one of them the message names verb and resource; not all of them end the run."""
    program = granted(name, rules_for([each for each in NEEDED[name] if each != missing]))

    outcome = program.run(POLICIES[name])

    assert f"no permission to {missing}: " in outcome.stderr + json.dumps(outcome.report)
    assert "Traceback" not in outcome.stderr
    if missing.resource == "pods/eviction":
        assert (outcome.exit_code, outcome.evicted()) == (1, [])
    elif missing.resource == "events" or missing.group == "metrics.k8s.io" or foresees(name, missing):
        assert (outcome.exit_code, len(outcome.evicted())) == (0, 2)
    else:
        assert (outcome.exit_code, outcome.report) == (3, {})
    assert len(crashing.wait_ready(2, "web")) == 2


def foresees(name: str, permission: Permission) -> bool:
    """Whether a policy needs a permission for the scheduler's sake alone; anti-affinity of `safe` needs namespaces."""
    lists = permission.verb == "list" and permission.resource not in {"nodes", "pods", "poddisruptionbudgets"}
    return name == "safe" and lists and permission.resource != "namespaces"


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
