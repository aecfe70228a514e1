"""Pods that stay whatever a strategy says, and the switches that let them go."""

from tests.e2e.acts import uids
from tests.e2e.builders import (
    LOCAL_STORAGE,
    claim,
    claim_volume,
    daemonset,
    node,
    pod,
    replicaset,
    storage_class,
    volume,
)
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in

EVICT = {"descheduler.alpha.kubernetes.io/evict": "true"}


def test_protected_pods_stay(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """Of one pod of each kind that is protected, and an ordinary one, only the ordinary one goes."""
    data = f"data-{namespace.name}"
    namespace.create(
        *(node("a"), node("b"), storage_class(data), volume(data, data), claim("data", data)),
        pod("mirror", node="a", annotations={"kubernetes.io/config.mirror": "hash"}),
        pod("static", node="a", annotations={"kubernetes.io/config.source": "file"}),
        pod("bare", node="a"),
        daemonset("agent", on="a"),
        replicaset("critical", priority_class="system-node-critical"),
        replicaset("scratch", volumes=[LOCAL_STORAGE]),
        replicaset("stateful", volumes=[claim_volume("data")]),
        replicaset("ordinary"),
    )
    by_app = {each["metadata"]["labels"]["app"]: each for each in namespace.wait_ready(8)}

    outcome = program.run(everything_in(namespace.name, {"podProtections": {"extraEnabled": ["PodsWithPVC"]}}))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted_uids() == [by_app["ordinary"]["metadata"]["uid"]]
    refused = outcome.refused()
    assert {app: refused.get(each["metadata"]["name"]) for app, each in by_app.items()} == {
        "mirror": "MirrorPods",
        "static": "StaticPods",
        "bare": "FailedBarePods",
        "agent": "DaemonSetPods",
        "critical": "SystemCriticalPods",
        "scratch": "PodsWithLocalStorage",
        "stateful": "PodsWithPVC",
        "ordinary": None,
    }
    assert uids(by_app.values()) - uids(namespace.pods()) == {by_app["ordinary"]["metadata"]["uid"]}


def test_mirror_and_static_pods_stay_with_every_protection_off(
    controlplane: ControlPlane, namespace: Namespace, program: Program
) -> None:
    """A mirror and a static pod stay even where they are annotated to go and no protection is left."""
    namespace.create(node("a"), node("b"))
    namespace.create(pod("mirror", node="a", annotations={"kubernetes.io/config.mirror": "hash", **EVICT}))
    namespace.create(pod("static", node="a", annotations={"kubernetes.io/config.source": "file", **EVICT}))
    before = namespace.wait_ready(2)
    off = ["PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods"]

    outcome = program.run(everything_in(namespace.name, {"podProtections": {"defaultDisabled": off}}))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.refused() == {"mirror": "MirrorPods", "static": "StaticPods"}
    assert uids(namespace.pods()) == uids(before)
