"""Pods from the API server's JSON."""

from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest

from rebalancer.cluster.pod import LONG_AGO, Condition, ContainerStatus, Owner, PreferredTerm, SpreadConstraint
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.cluster.taints import Toleration
from tests import make
from tests.unit.kube.wire.documents import container, pod_document, read, read_pod

CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NOT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
REQUIRED, PREFERRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))


def test_identity_owner_and_state_of_a_pod() -> None:
    pod = read_pod(
        name="web-1",
        namespace="shop",
        uid="u1",
        labels={"app": "web"},
        creationTimestamp="2026-01-01T00:00:00Z",
        deletionTimestamp="2026-01-02T00:00:00Z",
        ownerReferences=[{"kind": "ReplicaSet", "name": "web", "uid": "r1", "controller": True}],
        spec={"nodeName": "n1", "priority": 7, "containers": [{"image": "web"}, {}]},
        status={
            "phase": "Running",
            "reason": "Shutdown",
            "startTime": "2026-01-01T00:00:05Z",
            "nominatedNodeName": "n2",
        },
    )

    assert (str(pod), pod.uid, pod.node, pod.labels) == ("shop/web-1", "u1", "n1", {"app": "web"})
    assert (pod.phase, pod.reason, pod.terminating, pod.spec.priority) == ("Running", "Shutdown", True, 7)
    assert (pod.nominated_node, pod.spec.images) == ("n2", ("web", ""))
    assert pod.created == datetime(2026, 1, 1, tzinfo=UTC)
    assert pod.started == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert pod.owners == (Owner("ReplicaSet", "web", "r1", controller=True),)


def test_container_states_and_conditions() -> None:
    """Current states only; each kind of container apart."""
    states: list[dict[str, Any]] = [
        {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"state": {"terminated": {"reason": "Error", "exitCode": 2}}, "lastState": {"waiting": {"reason": "x"}}},
        {"state": {"running": {}}},
    ]
    init, ephemeral = [{"state": {"terminated": {"exitCode": 0}}}], [{"state": {"waiting": {"reason": "ErrImagePull"}}}]
    ready = {"type": "Ready", "status": "True", "reason": "ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"containerStatuses": states, "initContainerStatuses": init, "ephemeralContainerStatuses": ephemeral}
    pod = read_pod(status={**status, "conditions": [ready]})

    waiting, failed = ContainerStatus(3, "CrashLoopBackOff"), ContainerStatus(terminated="Error", exit_code=2)
    assert pod.containers == (waiting, failed, ContainerStatus())
    assert pod.init_containers == (ContainerStatus(exit_code=0),)
    assert pod.ephemeral_containers == (ContainerStatus(waiting="ErrImagePull"),)
    assert pod.conditions == (Condition("Ready", "True", "ok", datetime(2026, 1, 1, tzinfo=UTC)),)


def conditions(**by_type: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": name, "status": status} for name, status in by_type.items()]}}


def volume(**source: Any) -> dict[str, Any]:
    return {"spec": {"volumes": [{"name": "v", **source}]}}


def on_nodes(**rules: Any) -> dict[str, Any]:
    return {"spec": {"affinity": {"nodeAffinity": rules}}}


def terms(*expressions: Any) -> dict[str, Any]:
    return on_nodes(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}})


EXISTS = {"key": "zone", "operator": "Exists"}
ZONED = NodeSelectorTerm((Requirement("zone", "Exists", ()),))
#: A spread constraint in which no word is the default, and one in which nothing is said.
SPREAD = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["hash"]}
SPREAD |= {"nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore", "minDomains": 3}
SPREAD |= {"labelSelector": {"matchLabels": {"app": "web"}}}
UNSAID = {"topologyKey": "zone", "nodeTaintsPolicy": None, "labelSelector": None}
SPREADS = (
    SpreadConstraint(2, "zone", "ScheduleAnyway", make.selector(app="web"), ("hash",), 3, "Ignore", "Honor"),
    SpreadConstraint(1, "zone", "DoNotSchedule", None, (), None, "Honor", "Ignore"),
)


@pytest.mark.parametrize(
    ("fields", "name", "expected"),
    [
        # ready, by the condition of that name
        (conditions(PodScheduled="False", Ready="True"), "ready", True),
        (conditions(PodScheduled="True", Ready="False"), "ready", False),
        (conditions(PodScheduled="True"), "ready", False),
        ({"status": {"conditions": None}}, "ready", False),
        # its number may be missing
        ({"spec": {"priorityClassName": "system-node-critical"}}, "spec.priority_class", "system-node-critical"),
        ({"spec": {"priorityClassName": "system-node-critical"}}, "spec.priority", None),
        ({"spec": {"priorityClassName": None, "priority": -(2**31)}}, "spec.priority_class", ""),
        ({"spec": {"priorityClassName": None, "priority": -(2**31)}}, "spec.priority", -(2**31)),
        # null is absent
        (volume(emptyDir={}), "spec.local_storage", True),
        (volume(emptyDir={"medium": "Memory"}), "spec.local_storage", True),
        (volume(hostPath={"path": "/"}), "spec.local_storage", True),
        (volume(hostPath=None, emptyDir=None, configMap={}), "spec.local_storage", False),
        (volume(image={"reference": None}), "spec.local_storage", False),
        (volume(persistentVolumeClaim={"claimName": "c"}), "spec.local_storage", False),
        (volume(persistentVolumeClaim={"claimName": "c"}), "claims", ("c",)),
        (volume(ephemeral={"volumeClaimTemplate": {}}), "claims", ()),
        # claims that are made for a pod are named after it
        (volume(ephemeral={}), "own_claims", ("a-v",)),
        (volume(emptyDir={}), "own_claims", ()),
        # pods with node affinity, whatever it says, come in another order when spreading is evened out
        (on_nodes(), "spec.node_affinity", True),
        ({"spec": {"affinity": {"podAffinity": {}}}}, "spec.node_affinity", False),
        *(
            ({"spec": {"affinity": affinity}}, "spec.node_terms", None)
            for affinity in (
                {"nodeAffinity": None, "podAntiAffinity": None},
                {"podAntiAffinity": {REQUIRED: None}, "podAffinity": {PREFERRED: None}},
                {"nodeAffinity": {PREFERRED: None}},
                {"nodeAffinity": {PREFERRED: [{"preference": {"matchFields": None}}]}},
            )
        ),
        (terms(EXISTS), "spec.node_terms", (ZONED,)),
        (terms({**EXISTS, "values": None}), "spec.node_terms", (ZONED,)),
        # required terms that are there and empty are not absent
        (on_nodes(**{REQUIRED: {"nodeSelectorTerms": None}}), "spec.node_terms", ()),
        # a preference without a weight weighs nothing
        *(
            (on_nodes(**{PREFERRED: [{**given, "preference": preferred}]}), "spec.preferred", (model,))
            for given, preferred, model in (
                ({"weight": 3}, {"matchExpressions": [EXISTS]}, PreferredTerm(3, ZONED)),
                ({}, {}, PreferredTerm(0, NodeSelectorTerm())),
            )
        ),
        ({"spec": {"nodeSelector": {"disk": "ssd"}}}, "spec.node_selector", {"disk": "ssd"}),
        ({"spec": {"topologySpreadConstraints": [SPREAD, UNSAID]}}, "spec.spread", SPREADS),
        # autoscalers look for one value; what is neither true nor false may be meant to hold a node
        *(
            ({"annotations": {name: value}}, "holding", holding)
            for name, holding, *values in (
                (SAFE_TO_EVICT, SAFE_TO_EVICT, "false", "no", None),
                (SAFE_TO_EVICT, "", "true", "True"),
                (DO_NOT_DISRUPT, DO_NOT_DISRUPT, "true", ""),
                (DO_NOT_DISRUPT, "", "false"),
                ("other", "", "true"),
            )
            for value in values
        ),
        # its operator is kept, and null is not a value
        *(
            ({"spec": {"tolerations": [wire]}}, "spec.tolerations", (model,))
            for wire, model in (
                ({"operator": "Exists"}, Toleration("", "Exists")),
                ({"key": "k", "operator": "Equal"}, Toleration("k", "Equal")),
                ({"key": "k", "value": None, "effect": None}, Toleration("k")),
                ({"key": None, "operator": "Exists"}, Toleration("", "Exists")),
            )
        ),
    ],
)
def test_what_a_pod_says(fields: dict[str, Any], name: str, expected: Any) -> None:
    pod = read_pod(**fields)

    assert (attrgetter(name)(pod), pod.problem) == (expected, "")


FLAGS = ("evict_annotation", "prefer_no_eviction", "mirror", "static", "marked_critical")


@pytest.mark.parametrize(
    ("annotations", "meaning"),
    [
        ({EVICT: "true"}, "evict_annotation"),
        ({EVICT: "TRUE"}, "evict_annotation"),
        *(({EVICT: value}, None) for value in ("false", "False", "0", "no", "No", None)),
        *(({PREFER_NOT: value}, "prefer_no_eviction") for value in ("", None)),
        *(({CRITICAL: value}, "marked_critical") for value in ("", None)),
        *(({MIRROR: value}, "mirror") for value in ("hash", None)),
        *(({SOURCE: value}, "static") for value in ("file", None)),
        ({SOURCE: "api"}, None),
        ({"example.com/x": "y"}, None),
    ],
)
def test_annotations(annotations: dict[str, str | None], meaning: str | None) -> None:
    """Each has one meaning; Go reads null as an empty text, so that the annotation is there."""
    pod = read_pod(annotations=annotations)

    assert [flag for flag in FLAGS if getattr(pod, flag)] == ([meaning] if meaning else [])
    assert (pod.problem, pod.remark) == ("", "")


@pytest.mark.parametrize("value", ["", "  ", "yes", "1", "on", " true", "true,", "wahr", "enabled", "y\n" + "e" * 50])
def test_what_the_annotation_evict_does_not_plainly_say_is_a_no_with_a_warning(value: str) -> None:
    """It names the pod, and what would mean yes; a long value is cut."""
    snapshot = read("Pod", pod_document("a", annotations={EVICT: value}))

    assert not snapshot.pods[0].evict_annotation
    (warning,) = snapshot.warnings
    assert warning.startswith(f"Pod default/a has {value[:40]!r} as its {EVICT}, ")
    assert warning.endswith("which counts as no: only 'true' means yes")
    assert "\n" not in warning


def test_null_is_absent_wherever_a_server_may_write_it() -> None:
    """Go writes null for empty lists, maps and times."""
    metadata = "namespace uid labels annotations ownerReferences creationTimestamp deletionTimestamp"
    spec = "nodeName initContainers volumes overhead nodeSelector affinity tolerations resources priority"
    lists = "topologySpreadConstraints resourceClaims"
    status = "phase reason qosClass startTime initContainerStatuses ephemeralContainerStatuses"
    condition = {"type": "Ready", "status": None, "reason": None, "lastTransitionTime": None}
    states = [{"state": None}, {"state": {"waiting": None, "terminated": {"reason": None}}}]
    bare = {"image": None, "resources": None, "restartPolicy": None}
    pod = read_pod(
        **dict.fromkeys(metadata.split()),
        spec={**dict.fromkeys(f"{spec} {lists}".split()), "containers": [bare]},
        status={**dict.fromkeys(status.split()), "containerStatuses": states, "conditions": [condition]},
    )

    assert not pod.problem
    assert (pod.namespace, pod.node, pod.created, pod.started, pod.labels) == ("default", "", LONG_AGO, None, {})
    assert (pod.phase, pod.reason, pod.nominated_node) == ("", "", "")
    assert pod.conditions == (Condition("Ready", "", "", None),)
    assert pod.containers == (ContainerStatus(), ContainerStatus(exit_code=0))


@pytest.mark.parametrize("written", ["2026-01-02T01:30:00+01:30", "2026-01-02T00:00:00Z", "2026-01-02T00:00:00"])
def test_times_may_be_written_in_any_zone(written: str) -> None:
    """They are one and the same moment; one that names no zone is in UTC."""
    created = read_pod(creationTimestamp=written).created
    status = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": written}]}
    (node,) = read("Node", {"metadata": {"name": "n"}, "status": status}).nodes

    assert created == node.seen == datetime(2026, 1, 2, tzinfo=UTC)


def test_replicas_share_their_spec_labels_and_owners() -> None:
    """So that answers about one hold for all, and thousands cost little."""
    metadata = {"labels": {"app": "web"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}
    spec = {"containers": [container(requests={"cpu": "1"})]}
    one, other = read("Pod", *(pod_document(name, spec={**spec, "nodeName": name}, **metadata) for name in "ab")).pods

    assert one.spec is other.spec
    assert one.labels is other.labels
    assert one.owners is other.owners


OTHERS = {
    "containers": [container(requests={"cpu": "2"})],
    "initContainers": [{"restartPolicy": "Always"}],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "resources": {"requests": {"cpu": "3"}},
    "overhead": {"cpu": "1m"},
    "nodeSelector": {"disk": "ssd"},
    "affinity": {"nodeAffinity": {}},
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"topologyKey": "zone"}],
    "resourceClaims": [{"name": "gpu"}],
    "schedulingGates": [{"name": "quota"}],
    "priority": 7,
    "priorityClassName": "high",
    "schedulerName": "mine",
    "preemptionPolicy": "Never",
}


@pytest.mark.parametrize("field", OTHERS)
def test_pods_that_differ_in_what_counts_share_no_spec(field: str) -> None:
    spec = {"containers": [container(requests={"cpu": "1"})]}

    one, another = read(
        "Pod", pod_document("a", spec=spec), pod_document("b", spec={**spec, field: OTHERS[field]})
    ).pods

    assert one.spec != another.spec


@pytest.mark.parametrize(
    ("annotations", "phase", "expected"),
    [
        ("request-evict-only eviction-in-progress", "Running", True),
        ("request-evict-only eviction-in-progress", "Succeeded", False),
        ("request-evict-only", "Running", False),
        ("eviction-in-progress", "Running", False),
    ],
)
def test_an_eviction_in_progress_is_told_by_two_annotations(annotations: str, phase: str, expected: bool) -> None:
    """Their values do not matter, as in the descheduler; a pod that has ended is in nobody's way."""
    named = {f"descheduler.alpha.kubernetes.io/{each}": "" for each in annotations.split()}

    assert read_pod(annotations=named, status={"phase": phase}).evacuating is expected
