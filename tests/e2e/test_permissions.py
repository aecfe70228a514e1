"""The permissions that the chart computes from a policy are enough, and each one is needed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.chart.helm import every, needed, one, template
from tests.e2e.access import Permission, allowed, permissions
from tests.e2e.acts import set_restarts, uids
from tests.e2e.api import Api, Object
from tests.e2e.audit import Request
from tests.e2e.binaries import found
from tests.e2e.builders import daemonset, deployment, node
from tests.e2e.figures import figures
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.proxy import Lose, Proxy
from tests.e2e.waiting import wait_for

pytestmark = needed

NAME, HOME = "rebalancer", "kube-system"
LONG_AGO = "2020-01-01T00:00:00Z"


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


#: For each policy, what the chart's rules allow: of the cluster role, and of the role for the Lease.
NEEDED = {
    name: [
        *permissions(one(rendered, "ClusterRole")["rules"]),
        *(each for role in every(rendered, "Role") for each in permissions(role["rules"])),
    ]
    for name, rendered in RENDERED.items()
    if rendered
}
#: Only needed to settle what became of an eviction whose answers are lost.
TO_SETTLE = Permission("get", "", "pods")

#: Puts in place what the chart renders for a policy, without one of its permissions perhaps; returns the kubeconfig of
#: the account.
Granted = Callable[..., Path]


@pytest.fixture
def granted(controlplane: ControlPlane, namespace: Namespace) -> Iterator[Granted]:
    """The account, its roles and their bindings, as rendered but for one permission.

    There is no Lease from before, unless the permission that is missing has nothing to do with it: whoever makes a
    Lease waits some seconds for others who do so too.
    """
    api = controlplane.api
    api.create(one(RENDERED["safe"], "ServiceAccount"), HOME)
    made: list[tuple[str, str]] = [("ServiceAccount", NAME)]

    def grant(name: str, without: Permission | None = None) -> Path:
        rendered = RENDERED[name]
        if without is None or without.resource == "leases":
            api.delete("Lease", NAME, HOME)
        found = [each for kind in ("Role", "RoleBinding") for each in every(rendered, kind)]
        found += [each for each in every(rendered, "ConfigMap") if each["metadata"]["name"].endswith("-memory")]
        for each in found:
            created = api.create(narrowed(each, without), HOME)
            made.append((each["kind"], created["metadata"]["name"]))
        namespace.create(narrowed(one(rendered, "ClusterRole"), without), one(rendered, "ClusterRoleBinding"))
        roles = [one(rendered, "ClusterRole"), *every(rendered, "Role")]
        wait_for(lambda: all(in_force(api, role, without) for role in roles), f"the roles without {without} in force")
        return controlplane.kubeconfig_for(NAME, api.token(NAME, HOME))

    yield grant
    for kind, name in made:
        api.delete(kind, name, HOME)


def narrowed(role: Object, without: Permission | None) -> Object:
    """A role that lacks one permission."""
    if "rules" not in role:
        return role
    names = {each: rule.get("resourceNames") for rule in role["rules"] for each in permissions([rule])}
    rules = [
        {
            "verbs": [each.verb],
            "apiGroups": [each.group],
            "resources": [each.resource],
            **({"resourceNames": named} if named else {}),
        }
        for each, named in names.items()
        if each != without
    ]
    return {**role, "rules": rules}


def in_force(api: Api, role: Object, without: Permission | None) -> bool:
    """Whether the account has all permissions of a role but one, where that role is about."""
    namespace = role["metadata"].get("namespace", "")
    named = {each: rule.get("resourceNames", [""])[0] for rule in role["rules"] for each in permissions([rule])}
    account = f"{HOME}:{NAME}"
    return all(allowed(api, account, each, namespace, name) is (each != without) for each, name in named.items())


@pytest.fixture
def crashing(metrics: ControlPlane, namespace: Namespace) -> Namespace:
    """A namespace with three old pods, two of which crash on and on, and that have somewhere else to go."""
    namespace.create(node("a"), node("b"), daemonset("agent", usage="10m"), deployment("web", replicas=3))
    set_restarts(namespace, namespace.wait_ready(3, "web")[:2], restarts=150)
    for pod in namespace.pods():
        namespace.set_pod_status(pod["metadata"]["name"], {"startTime": LONG_AGO})
    return namespace


@pytest.mark.parametrize("name", POLICIES)
def test_computed_rules_suffice(metrics: ControlPlane, crashing: Namespace, granted: Granted, name: str) -> None:
    """Nothing is forbidden and every permission is used, also to settle an eviction whose answers are lost."""
    kubeconfig = granted(name)
    wait_for(lambda: {"a", "b"} <= figures(metrics.api, "NodeMetrics").keys(), "figures of both nodes")
    start = metrics.audit_offset()

    with Proxy(metrics, Lose("POST", "/eviction")) as proxy:
        outcome = Program(proxy.kubeconfig(kubeconfig)).run(POLICIES[name])

    requests = metrics.requests_since(start, user=f"system:serviceaccount:{HOME}:{NAME}")
    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert outcome.errors() == {}
    assert outcome.report["unknown"] == []
    assert not [request for request in requests if request.status in {401, 403}]
    assert {used(request) for request in requests} == set(NEEDED[name])
    reason = "RemovePodsHavingTooManyRestarts"
    events = [each for each in metrics.api.list("Event", crashing.name) if each["reason"] == reason]
    assert {event["involvedObject"]["name"] for event in events} == set(outcome.evicted())


@pytest.mark.parametrize(
    ("name", "missing"),
    [(name, each) for name, needed in NEEDED.items() for each in needed if each != TO_SETTLE],
    ids=str,
)
def test_missing_permission_is_named(crashing: Namespace, granted: Granted, name: str, missing: Permission) -> None:
    """The message names verb and resource; not all of them end the run."""
    outcome = Program(granted(name, without=missing)).run(POLICIES[name])

    assert f"no permission to {missing}: " in outcome.stderr + json.dumps(outcome.report)
    assert "Traceback" not in outcome.stderr
    if missing.resource == "pods/eviction":
        assert (outcome.exit_code, outcome.evicted()) == (1, [])
    elif (
        missing.resource in {"events", "leases", "configmaps"}
        or missing.group == "metrics.k8s.io"
        or foresees(name, missing)
    ):
        assert (outcome.exit_code, len(outcome.evicted())) == (0, 2)
    else:
        assert (outcome.exit_code, outcome.report) == (3, {})
    assert len(crashing.wait_ready(3, "web")) == 3


def test_what_cannot_be_settled_stays_in_doubt(metrics: ControlPlane, crashing: Namespace, granted: Granted) -> None:
    """Without `get pods` an eviction whose answers are lost is unknown; the pod may have gone, and it has."""
    before = uids(crashing.pods("web"))
    kubeconfig = granted("safe", without=TO_SETTLE)

    with Proxy(metrics, Lose("POST", "/eviction")) as proxy:
        outcome = Program(proxy.kubeconfig(kubeconfig)).run(POLICIES["safe"])

    assert outcome.exit_code == 0, outcome.stderr
    assert (len(outcome.evicted()), len(outcome.report["unknown"])) == (1, 1)
    assert before - uids(crashing.pods("web")) == set(outcome.spent_uids())


def foresees(name: str, permission: Permission) -> bool:
    """Whether a policy needs a permission for the scheduler's sake alone; anti-affinity of `safe` needs namespaces."""
    lists = permission.verb == "list" and permission.resource not in {"nodes", "pods", "poddisruptionbudgets"}
    return name == "safe" and lists and permission.resource != "namespaces"


def used(request: Request) -> Permission:
    """The permission that a request took."""
    group = request.path.split("/")[2] if request.path.startswith("/apis/") else ""
    return Permission(request.verb, group, "/".join(filter(None, (request.resource, request.subresource))))
