"""DefaultEvictor: which pods stay whatever a strategy says, and why."""

from datetime import timedelta
from typing import Any

import pytest

from rebalancer.engine.evictor import Evictor
from rebalancer.errors import UsageError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import refused
from rebalancer.policy.evictor import DefaultEvictorArgs
from tests.make import NOW, cluster, node, owner, pdb, pod, selector
from tests.unit.engine.stand_ins import by, first_cause, told

CRITICAL = 2_000_000_000


def disabled(*names: str) -> dict[str, Any]:
    return {"podProtections": {"defaultDisabled": list(names)}}


def enabled(*names: str) -> dict[str, Any]:
    return {"podProtections": {"extraEnabled": list(names)}}


CLASS, MORE = "system-cluster-critical", disabled("SystemCriticalPods")
CASES = [
    pytest.param({"problem": "bad"}, {}, "MalformedPods", id="a malformed pod"),
    pytest.param({"priority": CRITICAL}, {}, "SystemCriticalPods", id="a critical pod"),
    pytest.param({"priority": CRITICAL - 1}, {}, "", id="just below critical"),
    pytest.param({"priority_class": "system-node-critical"}, {}, "SystemCriticalPods", id="critical by its class"),
    pytest.param({"priority_class": CLASS, "priority": 5}, {}, "SystemCriticalPods", id="whatever the number"),
    pytest.param({"priority_class": "critical"}, {}, "", id="another class"),
    pytest.param({"marked_critical": True}, {}, "SystemCriticalPods", id="critical by its annotation"),
    pytest.param({"marked_critical": True, "priority_class": CLASS}, MORE, "", id="both go where the policy says so"),
    pytest.param({"marked_critical": True, "evict_annotation": True}, {}, "", id="or the annotation evict"),
    pytest.param({"priority": 7}, {"priorityThreshold": {"value": 7}}, "PriorityThreshold", id="at the threshold"),
    pytest.param({"priority": 6}, {"priorityThreshold": {"value": 7}}, "", id="below the threshold"),
    pytest.param({"priority": -1}, {"priorityThreshold": {"value": -1}}, "PriorityThreshold", id="a negative one"),
    pytest.param({"priority": None}, {"priorityThreshold": {"value": -1}}, "", id="no priority is below any threshold"),
    pytest.param({"priority": 7}, {"priorityThreshold": {"value": 7}, **MORE}, "", id="no threshold without critical"),
    pytest.param({"owners": None, "phase": "Failed"}, disabled("FailedBarePods"), "", id="a failed bare pod may go"),
    pytest.param({"owners": None}, disabled("FailedBarePods"), "BarePods", id="a running bare pod stays all the same"),
    pytest.param({"owners": [owner("w"), owner("d", "DaemonSet")]}, {}, "DaemonSetPods", id="one of several owners"),
    pytest.param({}, disabled("FailedBarePods"), "", id="a pod with an owner is not bare"),
    pytest.param({}, {"labelSelector": {"matchLabels": {"a": "b"}}}, "LabelSelector", id="other labels"),
    pytest.param({"labels": {"a": "b"}}, {"labelSelector": {"matchLabels": {"a": "b"}}}, "", id="matching labels"),
    pytest.param({}, {"labelSelector": {}}, "", id="an empty selector restricts nothing"),
    pytest.param({"age": 599}, {"minPodAge": "10m"}, "MinPodAge", id="too young"),
    pytest.param({"age": 600}, {"minPodAge": "10m"}, "", id="just old enough"),
    pytest.param({"started": None}, {"minPodAge": "10m"}, "MinPodAge", id="never started"),
    pytest.param({"prefer_no_eviction": True}, {}, "", id="a preference is not the filter's business"),
]


@pytest.mark.parametrize(("fields", "args", "cause"), CASES)
def test_each_protection(fields: dict[str, Any], args: dict[str, Any], cause: str) -> None:
    refusal = first_cause(pod("a", **fields), args)

    assert by(refusal) == cause
    assert bool(told(refusal)) == bool(cause)


@pytest.mark.parametrize(
    ("fields", "figures"),
    [
        ({"priority": CRITICAL}, {"priority": CRITICAL, "threshold": CRITICAL}),
        ({"priority_class": "system-node-critical"}, {"priority_class": "system-node-critical"}),
        ({"marked_critical": True}, {"annotated": True}),
    ],
)
def test_what_makes_a_pod_critical_is_told(fields: dict[str, Any], figures: dict[str, Any]) -> None:
    assert first_cause(pod("a", **fields)) == refused(Code.SYSTEM_CRITICAL_PODS, **figures)


@pytest.mark.parametrize(
    ("budgets", "cause"),
    [
        pytest.param((pdb("web", 0),), "", id="a PDB selects it, whatever it allows"),
        pytest.param((pdb("web", 1, "other"),), "PodsWithoutPDB", id="a PDB of another namespace"),
        pytest.param((pdb("web", 1, selector=None),), "PodsWithoutPDB", id="a PDB without a selector"),
        pytest.param((pdb("web", 1, selector=selector()),), "", id="a PDB over everything"),
        pytest.param((), "PodsWithoutPDB", id="no PDBs"),
        pytest.param(None, "PodsWithoutPDB", id="PDBs are unknown"),
    ],
)
def test_pods_without_a_pdb(budgets: Any, cause: str) -> None:
    assert by(first_cause(pod("a", labels={"app": "web"}), enabled("PodsWithoutPDB"), budgets=budgets)) == cause


CLASSES = {
    "podProtections": {
        "extraEnabled": ["PodsWithPVC"],
        "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "slow"}, {"name": "local"}]}},
    }
}
CLAIMS = {("default", "fast"): "fast", ("default", "slow"): "slow", ("default", "none"): None, ("other", "c"): "fast"}


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        pytest.param(("fast", "slow"), "claim slow has protected storage class slow", id="one protected class of two"),
        pytest.param(("none",), "claim none is unknown", id="a claim without a class"),
        pytest.param(("c",), "claim c is unknown", id="a claim of another namespace"),
    ],
)
def test_protection_of_storage_classes(claims: tuple[str, ...], reason: str) -> None:
    """Only certain classes stay; what is unknown counts as one of them."""
    refusal = first_cause(pod("a", claims=claims), CLASSES, claims=CLAIMS)

    assert by(refusal) == "PodsWithPVC"
    assert reason in told(refusal)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (CLASSES, "storage class of claim c is unknown, so it counts as protected"),
        (enabled("PodsWithoutPDB"), "PDBs are unknown, so it counts as having none"),
    ],
)
def test_kinds_that_were_not_read_protect_and_the_reason_says_so(args: dict[str, Any], words: str) -> None:
    assert told(first_cause(pod("a", claims=("c",)), args, claims=None, budgets=None)) == words


def test_a_threshold_by_name_is_the_value_of_the_class() -> None:
    args = {"priorityThreshold": {"name": "high"}}

    assert by(first_cause(pod("a", priority=100), args, priority_classes={"high": 100})) == "PriorityThreshold"
    assert not first_cause(pod("a", priority=99), args, priority_classes={"high": 100})
    for classes in ({"low": 1}, None):
        with pytest.raises(UsageError, match="PriorityClass 'high'"):
            first_cause(pod("a"), args, priority_classes=classes)


PROTECTED = {
    "priority": CRITICAL,
    "owners": [owner("d", "DaemonSet")],
    "local_storage": True,
    "started": None,
    "prefer_no_eviction": True,
}
STRICT = {
    "minPodAge": "1h",
    "minReplicas": 9,
    "noEvictionPolicy": "Mandatory",
    "labelSelector": {"matchLabels": {"x": "y"}},
}


def test_the_evict_annotation_lifts_all_that_can_be_lifted() -> None:
    """Also minReplicas and a mandatory preference."""
    assert first_cause(pod("a", **PROTECTED), STRICT)
    assert not first_cause(pod("a", evict_annotation=True, **PROTECTED), STRICT)
    assert not first_cause(pod("a", evict_annotation=True, owners=None))


@pytest.mark.parametrize("field", ["mirror", "static", "terminating", "problem"])
def test_no_annotation_exposes_what_must_never_go(field: str) -> None:
    """Stricter than the descheduler."""
    assert first_cause(pod("a", evict_annotation=True, **{field: "x"}))


def test_the_first_cause_comes_in_the_documented_order() -> None:
    """Each cure brings up the next cause."""
    args = {
        **STRICT,
        "podProtections": {"extraEnabled": ["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"]},
        "nodeFit": True,
        "namespaceLabelSelector": {"matchLabels": {"x": "y"}},
    }
    fields = {
        **PROTECTED,
        "mirror": True,
        "static": True,
        "terminating": True,
        "claims": ("c",),
        "resource_claims": True,
    }
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("MirrorPods", {"mirror": False}),
        ("StaticPods", {"static": False}),
        ("TerminatingPods", {"terminating": False}),
        ("PreferNoEviction", {"prefer_no_eviction": False}),
        ("SystemCriticalPods", {"priority": None}),
        ("PodsWithLocalStorage", {"local_storage": False}),
        ("DaemonSetPods", {"owners": "web"}),
        ("PodsWithPVC", {"claims": ()}),
        ("PodsWithoutPDB", {"namespace": "guarded"}),
        ("PodsWithResourceClaims", {"resource_claims": False}),
        ("LabelSelector", {"labels": {"x": "y"}}),
        ("MinPodAge", {"started": NOW - timedelta(days=1)}),
        ("NodeFit", {"node": "n2"}),
        ("NamespaceLabelSelector", {"namespace": "open"}),
        ("MinReplicas", {}),
    )
    budgets = tuple(pdb("all", 1, namespace, selector=selector()) for namespace in ("guarded", "open"))
    for expected, cure in steps:
        on = cluster(
            [node("n1"), node("n2", unschedulable=True)],
            [candidate := pod("a", **fields)],
            budgets=budgets,
            namespaces={"guarded": {}, "open": {"x": "y"}},
        )
        assert Evictor(on, DefaultEvictorArgs.model_validate(args)).causes(candidate)[0].code == expected
        fields |= cure


def test_pods_on_a_node_that_could_not_be_read_stay() -> None:
    """Whatever an annotation or the policy says; pods on other nodes are not concerned."""
    nodes = [node("n1", ready=False, problem="lots"), node("n2"), node("n3")]

    refusal = first_cause(pod("a", node="n1", evict_annotation=True), nodes=nodes)

    assert (by(refusal), told(refusal)) == ("MalformedNodes", "its node n1 could not be read: lots")
    assert first_cause(pod("a", node="n2"), nodes=nodes) is None
    assert first_cause(pod("a", node=""), nodes=nodes) is None
