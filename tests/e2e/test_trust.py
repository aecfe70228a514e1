"""Patience on a real control plane: others at work, and single replicas that are moved by a rollout."""

from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.memory.document import KEY, Memory, encoded
from tests.e2e.acts import cordon
from tests.e2e.api import Object
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.program import everything_in, policy
from tests.e2e.waiting import wait_for

NAME, HOME = "kube-rebalancer-memory", "kube-system"
TRUST: Object = {"youngNodes": "0s", "readyWithin": "10s"}
BALANCE = {"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}}}


@pytest.fixture
def api(controlplane):
    """The API of a cluster whose memory has been kept for long and holds nothing."""
    data = {KEY: encoded(Memory(since=datetime.now(UTC) - timedelta(days=9)))}
    controlplane.api.delete("ConfigMap", NAME, HOME)
    controlplane.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}, HOME)
    yield controlplane.api
    controlplane.api.delete("ConfigMap", NAME, HOME)


@pytest.fixture
def lopsided(api, namespace):
    """Six pods of a Deployment, of one core each, on a node of eight; another node is empty."""
    namespace.create(node("a", cpu="8"), node("b", cpu="8"))
    cordon(api, "b")
    namespace.create(deployment("web", replicas=6, cpu="1"))
    namespace.wait_ready(6, "web")
    cordon(api, "b", on=False)
    return namespace


def balanced(namespace):
    args = {**BALANCE["LowNodeUtilization"], "evictableNamespaces": {"exclude": ["kube-system"]}}
    return policy({"LowNodeUtilization": args}, {"nodeFit": True}, trust=TRUST)


def rolled_out(api, namespace):
    api.patch("Deployment", "web", namespace, {"spec": {"paused": True}})


def scaled(api, namespace):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": 6, "maxReplicas": 9, "scaleTargetRef": target}
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    made = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"}}
    found = api.request("POST", path, {**made, "spec": spec})
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"lastScaleTime": now, "desiredReplicas": 6, "currentReplicas": 6}
    api.request("PUT", f"{path}/web/status", {**found, "status": {**found.get("status", {}), **status}})


@pytest.mark.parametrize(
    ("happens", "cause"),
    [(rolled_out, "Rollout"), (scaled, "Autoscaled")],
)
def test_what_others_change_is_left_alone(api, lopsided, program, happens, cause):
    """A rollout, and an HPA that has just scaled: what went before stays then."""
    assert program.dry_run(balanced(lopsided)).evicted()

    happens(api, lopsided.name)

    def left_alone():
        outcome = program.run(balanced(lopsided))
        assert outcome.exit_code == 0, outcome.stderr
        assert outcome.evicted() == []
        return outcome if cause in {each["by"] for each in outcome.report["refusals"]} else None

    assert wait_for(left_alone, f"a refusal by {cause}")


@pytest.fixture
def lone(api, namespace):
    """Two Deployments of one replica under PDBs that allow nothing, one of which is replaced only after it has gone."""
    namespace.create(node("a"), node("b"))
    at_once, later = deployment("web"), deployment("db")
    later["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    namespace.create(at_once, later, pdb("web", min_available=1), pdb("db", min_available=1))
    namespace.wait_ready(2)
    return namespace


def restarts(controlplane, offset):
    """Which Deployments the program has patched, and which pods it has evicted."""
    wrote = [each for each in controlplane.requests_since(offset) if not each.reads_only and each.status < 300]
    return [each.name for each in wrote if each.resource == "deployments" or each.subresource == "eviction"]


@pytest.mark.parametrize("restart", [True, "annotated"])
def test_a_single_replica_is_moved_by_a_rollout(controlplane, lone, program, restart):
    """Where that is wanted a second pod is Ready before the first one goes; what has none stays; a dry run says so."""
    if restart == "annotated":
        agreed = {"metadata": {"annotations": {"kube-rebalancer/restart": "true"}}}
        lone.api.patch("Deployment", "web", lone.name, agreed)
    rule = everything_in(lone.name, {"minReplicas": 2}, trust={**TRUST, "restart": restart})
    offset, before = controlplane.audit_offset(), {pod["metadata"]["name"] for pod in lone.pods("web")}

    dry = program.dry_run(rule)
    assert restarts(controlplane, offset) == []
    live = program.run(rule)

    assert live.exit_code == 0, live.stderr
    assert [each["restarted"] for each in live.report["evictions"]] == ["web"]
    assert live.evicted() == dry.evicted() == sorted(before)
    assert [each["restarted"] for each in dry.report["evictions"]] == ["web"]
    assert restarts(controlplane, offset) == ["web"]
    template = lone.api.read("Deployment", "web", lone.name)["spec"]["template"]
    assert list(template["metadata"]["annotations"]) == ["kubectl.kubernetes.io/restartedAt"]
    after = wait_for(lambda: [pod for pod in lone.ready("web") if pod["metadata"]["name"] not in before], "a new pod")
    lone.wait_ready(1, "web")
    again = program.run(rule)
    assert again.evicted() == [after[0]["metadata"]["name"]]  # a rule strategy; balance strategies would rest
