"""Pods from the API server's JSON."""

from datetime import UTC, datetime
from typing import Any

import pytest

from rebalancer.cluster.pod import LONG_AGO, Condition, ContainerStatus, Owner
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from rebalancer.cluster.taints import Toleration
from tests.unit.kube.wire.documents import container, pod_document, read, read_pod

CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NOT = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
MIRROR = "kubernetes.io/config.mirror"
SOURCE = "kubernetes.io/config.source"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


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
    pod = read_pod(
        status={
            "containerStatuses": [
                {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                {
                    "state": {"terminated": {"reason": "Error", "exitCode": 2}},
                    "lastState": {"waiting": {"reason": "x"}},
                },
                {"state": {"running": {}}},
            ],
            "initContainerStatuses": [{"state": {"terminated": {"exitCode": 0}}}],
            "ephemeralContainerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}],
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ],
        }
    )

    assert pod.containers == (
        ContainerStatus(restarts=3, waiting="CrashLoopBackOff"),
        ContainerStatus(terminated="Error", exit_code=2),
        ContainerStatus(),
    )
    assert pod.init_containers == (ContainerStatus(exit_code=0),)
    assert pod.ephemeral_containers == (ContainerStatus(waiting="ErrImagePull"),)
    assert pod.conditions == (Condition("Ready", "True", "ok", datetime(2026, 1, 1, tzinfo=UTC)),)
    assert pod.ready


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}], True),
        ([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}], False),
        ([{"type": "PodScheduled", "status": "True"}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_pod_is_ready_by_its_condition_of_that_name(conditions: Any, ready: bool) -> None:
    assert read_pod(status={"conditions": conditions}).ready is ready


FLAGS = ("evict_annotation", "prefer_no_eviction", "mirror", "static", "marked_critical")


@pytest.mark.parametrize(
    ("annotations", "meaning"),
    [
        pytest.param({EVICT: "true"}, "evict_annotation", id="evict"),
        pytest.param({EVICT: "TRUE"}, "evict_annotation", id="evict in any case of letters"),
        pytest.param({PREFER_NOT: ""}, "prefer_no_eviction", id="prefer no eviction, whatever the value"),
        pytest.param({PREFER_NOT: None}, "prefer_no_eviction", id="also null"),
        pytest.param({CRITICAL: ""}, "marked_critical", id="critical, whatever the value"),
        pytest.param({CRITICAL: None}, "marked_critical", id="critical and null"),
        pytest.param({MIRROR: "hash"}, "mirror", id="a mirror pod"),
        pytest.param({MIRROR: None}, "mirror", id="a mirror pod by an annotation that is null"),
        pytest.param({SOURCE: "file"}, "static", id="a static pod"),
        pytest.param({SOURCE: None}, "static", id="a static pod by an annotation that is null"),
        pytest.param({SOURCE: "api"}, None, id="a pod from the API is not static"),
        pytest.param({"example.com/x": "y"}, None, id="others mean nothing"),
    ],
)
def test_annotations(annotations: dict[str, str | None], meaning: str | None) -> None:
    """Each has one meaning; Go reads null as an empty text, so that the annotation is there."""
    pod = read_pod(annotations=annotations)

    assert [flag for flag in FLAGS if getattr(pod, flag)] == ([meaning] if meaning else [])
    assert (pod.problem, pod.remark) == ("", "")


@pytest.mark.parametrize(
    ("annotations", "holding"),
    [
        ({SAFE_TO_EVICT: "false"}, SAFE_TO_EVICT),
        ({SAFE_TO_EVICT: "no"}, SAFE_TO_EVICT),
        ({SAFE_TO_EVICT: None}, SAFE_TO_EVICT),
        ({SAFE_TO_EVICT: "true"}, ""),
        ({SAFE_TO_EVICT: "True"}, ""),
        ({DO_NOT_DISRUPT: "true"}, DO_NOT_DISRUPT),
        ({DO_NOT_DISRUPT: ""}, DO_NOT_DISRUPT),
        ({DO_NOT_DISRUPT: "false"}, ""),
        ({}, ""),
    ],
)
def test_annotations_hold_a_node_unless_they_clearly_do_not(annotations: dict[str, str | None], holding: str) -> None:
    """Autoscalers look for one value; what is neither true nor false may be meant to hold it."""
    assert read_pod(annotations=annotations).holding == holding


@pytest.mark.parametrize("value", ["false", "False", "0", "no", "No", None])
def test_the_annotation_evict_may_say_no(value: str | None) -> None:
    """Without a word about it."""
    snapshot = read("Pod", pod_document(annotations={EVICT: value}))

    assert not snapshot.pods[0].evict_annotation
    assert snapshot.warnings == ()


@pytest.mark.parametrize("value", ["", "  ", "yes", "1", "on", " true", "true,", "wahr", "enabled", "y\n" + "e" * 50])
def test_what_the_annotation_evict_does_not_plainly_say_is_a_no_with_a_warning(value: str) -> None:
    """It names the pod, and what would mean yes; a long value is cut."""
    snapshot = read("Pod", pod_document("a", annotations={EVICT: value}))

    assert not snapshot.pods[0].evict_annotation
    (warning,) = snapshot.warnings
    assert warning.startswith(f"Pod default/a has {value[:40]!r} as its {EVICT}, ")
    assert warning.endswith("which counts as no: only 'true' means yes")
    assert "\n" not in warning


def test_the_priority_class_of_a_pod_is_read() -> None:
    """Its number may be missing."""
    spec = read_pod(spec={"priorityClassName": "system-node-critical"}).spec

    assert (spec.priority_class, spec.priority) == ("system-node-critical", None)
    spec = read_pod(spec={"priorityClassName": None, "priority": -(2**31)}).spec
    assert (spec.priority_class, spec.priority) == ("", -(2**31))


@pytest.mark.parametrize(
    ("volumes", "local", "claims"),
    [
        pytest.param([{"emptyDir": {}}], True, (), id="an emptyDir"),
        pytest.param([{"emptyDir": {"medium": "Memory"}}], True, (), id="one in memory too"),
        pytest.param([{"hostPath": {"path": "/"}}], True, (), id="a hostPath"),
        pytest.param([{"hostPath": None, "emptyDir": None, "configMap": {}}], False, (), id="null is absent"),
        pytest.param([{"persistentVolumeClaim": {"claimName": "c"}}], False, ("c",), id="a claim"),
        pytest.param([{"ephemeral": {"volumeClaimTemplate": {}}}], False, (), id="a generic ephemeral volume"),
        pytest.param([{"name": "v", "image": {"reference": None}}], False, (), id="an image without a name"),
        pytest.param(None, False, (), id="no volumes"),
    ],
)
def test_volumes(volumes: Any, local: bool, claims: tuple[str, ...]) -> None:
    pod = read_pod(spec={"volumes": volumes})

    assert (pod.spec.local_storage, pod.claims, pod.problem) == (local, claims, "")


def test_claims_that_are_made_for_a_pod_are_named_after_it() -> None:
    volumes = [{"name": "scratch", "ephemeral": {}}, {"name": "tmp", "emptyDir": {}}]

    assert read_pod(name="a", spec={"volumes": volumes}).own_claims == ("a-scratch",)


def test_what_a_spread_constraint_says_is_taken() -> None:
    """Each of its words, where they are not the defaults: by one pod at the most, and not in any other way."""
    said = {"nodeTaintsPolicy": "Honor", "nodeAffinityPolicy": "Ignore", "minDomains": 3, "matchLabelKeys": ["hash"]}
    base = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    spec = {"topologySpreadConstraints": [{**base, **selector, **said}]}

    (found,) = read_pod(spec=spec, labels={"app": "web", "hash": "1"}).spec.spread

    assert (found.max_skew, found.topology_key, found.when_unsatisfiable) == (2, "zone", "DoNotSchedule")
    assert (found.node_taints_policy, found.node_affinity_policy, found.min_domains) == ("Honor", "Ignore", 3)
    assert found.match_label_keys == ("hash",)
    (found,) = read_pod(spec={"topologySpreadConstraints": [{"topologyKey": "zone"}]}).spec.spread
    assert (found.max_skew, found.when_unsatisfiable) == (1, "DoNotSchedule")
    assert (found.node_taints_policy, found.node_affinity_policy) == ("Ignore", "Honor")


@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ({"operator": "Exists"}, Toleration("", "Exists")),
        ({"key": "k", "operator": "Equal"}, Toleration("k", "Equal")),
        ({"key": "k", "value": None, "effect": None}, Toleration("k")),
        ({"key": None, "operator": "Exists"}, Toleration("", "Exists")),
    ],
)
def test_a_toleration(wire: dict[str, Any], model: Toleration) -> None:
    """Its operator is kept, and null is not a value."""
    assert read_pod(spec={"tolerations": [wire]}).spec.tolerations == (model,)


@pytest.mark.parametrize(("affinity", "is_there"), [({"nodeAffinity": {}}, True), ({"podAffinity": {}}, False)])
def test_node_affinity_that_demands_nothing_is_there_all_the_same(affinity: Any, is_there: bool) -> None:
    """Pods with node affinity, whatever it says, come in another order when spreading is evened out."""
    assert read_pod(spec={"affinity": affinity}).spec.node_affinity is is_there


@pytest.mark.parametrize("values", [{}, {"values": None}])
def test_an_expression_without_values_has_none(values: dict[str, None]) -> None:
    """`Exists` takes none: the field is absent, or null."""
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists", **values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}

    (found,) = read_pod(spec={"affinity": {"nodeAffinity": required}}).spec.node_terms or ()
    assert found == NodeSelectorTerm((Requirement("zone", "Exists", ()),))


def test_constraints_on_nodes_and_neighbours() -> None:
    """Each part of the spec arrives where decisions look for it."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": term}]}
    apart = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, "namespaces": ["x"]}
    spread = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "nodeTaintsPolicy": None}
    spec = read_pod(
        spec={
            "nodeSelector": {"disk": "ssd"},
            "affinity": {
                "nodeAffinity": {**required, **preferred},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]},
            },
            "topologySpreadConstraints": [spread],
            "resourceClaims": [{"name": "gpu"}],
        }
    ).spec

    assert spec.selects_node({"disk": "ssd", "zone": "a"}, "n1")
    assert not spec.selects_node({"disk": "ssd", "zone": "b"}, "n1")
    assert not spec.selects_node({"disk": "hdd", "zone": "a"}, "n1")
    assert spec.preferred[0].weight == 3
    assert spec.preferred[0].term.matches({"zone": "a"}, "n1")
    assert spec.anti_affinity[0].selector is not None
    assert (spec.anti_affinity[0].topology_key, spec.anti_affinity[0].namespaces) == ("zone", ("x",))
    assert (spec.spread[0].max_skew, spec.spread[0].when_unsatisfiable) == (2, "ScheduleAnyway")
    assert (spec.spread[0].selector, spec.spread[0].node_taints_policy) == (None, "Ignore")
    assert spec.resource_claims
    assert not spec.problem


def test_null_is_absent_wherever_a_server_may_write_it() -> None:
    """Go writes null for empty lists, maps and times."""
    nulls = dict.fromkeys
    pod = read_pod(
        **nulls(
            ("namespace", "uid", "labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp")
        ),
        spec={
            **nulls(("nodeName", "initContainers", "volumes", "overhead", "nodeSelector", "affinity", "tolerations")),
            **nulls(("topologySpreadConstraints", "resourceClaims", "priority", "resources")),
            "containers": [{"image": None, "resources": None, "restartPolicy": None}],
        },
        status={
            **nulls(
                ("phase", "reason", "qosClass", "startTime", "initContainerStatuses", "ephemeralContainerStatuses")
            ),
            "containerStatuses": [{"state": None}, {"state": {"waiting": None, "terminated": {"reason": None}}}],
            "conditions": [{"type": "Ready", "status": None, "reason": None, "lastTransitionTime": None}],
        },
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


@pytest.mark.parametrize(
    "affinity",
    [
        {"nodeAffinity": None, "podAntiAffinity": None},
        {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}, "podAffinity": None},
        {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": None}},
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": None}},
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": {"matchFields": None}}]}},
    ],
)
def test_null_inside_affinity_is_absent(affinity: dict[str, Any]) -> None:
    spec = read_pod(spec={"affinity": affinity}).spec

    assert not spec.problem
    assert spec.selects_node({}, "n1")


def test_a_required_affinity_without_terms_matches_no_node() -> None:
    """Present and empty is not absent."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}}

    assert not read_pod(spec={"affinity": {"nodeAffinity": required}}).spec.selects_node({}, "n1")


def test_replicas_share_their_spec_labels_and_owners() -> None:
    """So that answers about one hold for all, and thousands cost little."""
    metadata = {"labels": {"app": "web"}, "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}]}
    spec = {"containers": [container(requests={"cpu": "1"})]}
    one, other = read("Pod", *(pod_document(name, spec={**spec, "nodeName": name}, **metadata) for name in "ab")).pods

    assert one.spec is other.spec
    assert one.labels is other.labels
    assert one.owners is other.owners


@pytest.mark.parametrize(
    "other",
    [
        {"containers": [container(requests={"cpu": "2"})]},
        {"initContainers": [{"restartPolicy": "Always"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"resources": {"requests": {"cpu": "3"}}},
        {"overhead": {"cpu": "1m"}},
        {"nodeSelector": {"disk": "ssd"}},
        {"affinity": {"nodeAffinity": {}}},
        {"tolerations": [{"operator": "Exists"}]},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        {"resourceClaims": [{"name": "gpu"}]},
        {"priority": 7},
        {"priorityClassName": "high"},
        {"schedulerName": "mine"},
        {"schedulingGates": [{"name": "quota"}]},
        {"preemptionPolicy": "Never"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_pods_that_differ_in_what_counts_share_no_spec(other: dict[str, Any]) -> None:
    spec = {"containers": [container(requests={"cpu": "1"})]}

    one, another = read("Pod", pod_document("a", spec=spec), pod_document("b", spec={**spec, **other})).pods

    assert one.spec != another.spec


@pytest.mark.parametrize(
    ("annotations", "phase", "expected"),
    [
        (("request-evict-only", "eviction-in-progress"), "Running", True),
        (("request-evict-only", "eviction-in-progress"), "Pending", True),
        (("request-evict-only", "eviction-in-progress"), "Succeeded", False),
        (("request-evict-only",), "Running", False),
        (("eviction-in-progress",), "Running", False),
        ((), "Running", False),
    ],
)
def test_an_eviction_in_progress_is_told_by_two_annotations(
    annotations: tuple[str, ...], phase: str, expected: bool
) -> None:
    """Their values do not matter, as in the descheduler; a pod that has ended is in nobody's way."""
    named = {f"descheduler.alpha.kubernetes.io/{each}": "" for each in annotations}

    assert read_pod(annotations=named, status={"phase": phase}).evacuating is expected
