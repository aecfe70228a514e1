"""Objects that cannot be read: reported, left alone, and no harm to the others."""

import json
from typing import Any

import pytest

from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import ListCollector
from rebalancer.untrusted.documents import Unreadable
from tests.unit.kube.wire.documents import pod_document, read, read_pod

CPU = {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}
HEAVY = {"weight": 1 << 70, "preference": {}}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"spec": CPU}, "cpu: 'lots' is not a valid quantity"),
        ({"spec": {"overhead": {"memory": "1 Gi"}}}, "memory: '1 Gi' is not a valid quantity"),
        ({"creationTimestamp": "yesterday"}, "datetime"),
        ({"labels": {"app": 1}}, "Expected `str`, got `int`"),
        ({"labels": ["app"]}, "Expected `object`, got `array`"),
        ({"annotations": {"kubernetes.io/config.mirror": 1}}, "Expected `str | null`"),
        ({"ownerReferences": [{"kind": 1}]}, "Expected `str`, got `int`"),
        *(({"ownerReferences": [{**each, "name": "d"}]}, "an owner has no kind") for each in ({}, {"kind": ""})),
        *(({"ownerReferences": [each]}, "Expected `object`") for each in ("DaemonSet", None)),
        ({"spec": {"priority": 2**31}}, "Expected `int`"),
        ({"spec": {"priorityClassName": 5}}, "Expected `str | null`"),
        ({"spec": {"priority": "high"}}, "Expected `int | null`, got `str`"),
        ({"spec": {"tolerations": {}}}, "Expected `array`"),
        ({"spec": {"affinity": {"nodeAffinity": {PREFERRED: [HEAVY]}}}}, "Expected `int` <= 2147483647"),
        ({"spec": ["nodeName"]}, "Expected `object`"),
        ({"status": "Running"}, "Expected `object | null`"),
    ],
)
def test_a_malformed_pod_is_reported_and_left_alone(fields: dict[str, Any], problem: str) -> None:
    """It stays in the snapshot with its problem, which no strategy gets past, and a warning names it."""
    snapshot = read("Pod", pod_document("good"), pod_document("bad", **fields), pod_document("fine"))

    assert [pod.name for pod in snapshot.pods] == ["good", "bad", "fine"]
    assert [bool(pod.problem) for pod in snapshot.pods] == [False, True, False]
    (warning,) = snapshot.warnings
    assert warning.startswith("Pod default/bad is malformed and left alone: ")
    assert problem in warning


EXPRESSION, ZONE = {"key": "zone", "operator": "Exists"}, {"topologyKey": "zone"}


@pytest.mark.parametrize(
    ("kind", "term"),
    [
        *(("nodeAffinity", {"preference": {"matchExpressions": [{**EXPRESSION, key: None}]}}) for key in EXPRESSION),
        *(("nodeAffinity", {key: None}) for key in ("weight", "preference")),
        *(("podAffinity", term) for term in ({"podAffinityTerm": None}, {"podAffinityTerm": {"topologyKey": None}})),
        *(("spread", {**ZONE, key: None}) for key in ("topologyKey", "maxSkew", "whenUnsatisfiable")),
    ],
)
def test_null_in_place_of_what_a_rule_is_made_of_is_malformed(kind: str, term: dict[str, Any]) -> None:
    """Elsewhere it is absent; a rule without it would mean something else."""
    rule = {"topologySpreadConstraints": [term]} if kind == "spread" else {"affinity": {kind: {PREFERRED: [term]}}}

    assert read_pod(spec=rule).problem


def test_a_malformed_pod_keeps_its_place() -> None:
    """What can be read of it is kept: it takes a slot on its node; what is missing is not made up."""
    bad = pod_document("bad", namespace="shop", uid="u", labels={"a": 1}, spec={"nodeName": "n1"})
    less = pod_document("less", namespace=None, uid=None, labels={"a": 1})

    pods = read("Pod", bad, less).pods

    assert [(str(pod), pod.uid, pod.node, pod.active) for pod in pods] == [
        ("shop/bad", "u", "n1", True),
        ("default/less", "", "", True),
    ]


@pytest.mark.parametrize("item", [None, 5, [], {}, {"metadata": None}, {"metadata": {"name": None, "labels": 1}}])
def test_something_without_a_name_is_ignored_with_a_warning(item: Any) -> None:
    """Nothing can be done with it, and the page is read all the same."""
    snapshot = read("Pod", pod_document("good"), item)

    assert [pod.name for pod in snapshot.pods] == ["good"]
    assert snapshot.warnings[0].startswith("Pod without a name is malformed and ignored: ")
    samples = read("PodMetrics", {"metadata": None, "containers": []}, {"containers": []})
    assert samples.pod_metrics == ()  # and not those of one pod
    assert samples.warnings[0].startswith("2 PodMetrics objects (without a name, without a name): each is malformed")


def test_a_malformed_node_stands_there_but_takes_part_in_nothing() -> None:
    """It is neither ready nor open to new pods, and a warning says so; one without a name is left out."""
    bad = {"metadata": {"name": "x"}, "status": {"allocatable": {"cpu": "lots"}}}
    snapshot = read("Node", bad, {"metadata": {"labels": {}}}, {"metadata": {"name": 5}})

    (node,) = snapshot.nodes
    assert (node.name, node.ready, node.unschedulable) == ("x", False, True)
    assert "'lots' is not a valid quantity" in node.problem
    assert [warning.partition(": ")[0] for warning in snapshot.warnings] == [
        "Node 5 is malformed and ignored",
        "Node without a name is malformed and ignored",
        "Node x is malformed and left alone, and so are its pods",
    ]
    assert "cpu: 'lots'" in snapshot.warnings[2]


def test_the_same_trouble_of_many_is_one_line() -> None:
    """With the names of three; another trouble has a line of its own."""
    bad = [{"metadata": {"name": f"n{number:02}"}, "status": {"allocatable": {"cpu": "lots"}}} for number in range(12)]
    other = {"metadata": {"name": "x"}, "spec": {"taints": 5}}

    many, one = read("Node", *bad, other).warnings

    assert many.startswith("12 Node objects (n00, n01, n02 and 9 more): each is malformed and left alone")
    assert one.startswith("Node x is malformed")


LOWEST = "counts as the lowest, so that no priority is below it"
CLAIM = {"metadata": {"name": "x"}, "spec": {"storageClassName": 1}}


@pytest.mark.parametrize(
    ("kind", "item", "known", "warning"),
    [
        *(
            ("PriorityClass", {"metadata": {"name": "x"}, **each}, {"x": -(2**31)}, f"{LOWEST}: {problem}")
            for each, problem in (({"value": "high"}, "Expected `int`"), ({}, "Object missing"))
        ),
        ("Namespace", {"metadata": {"name": "x", "labels": {"a": 1}}}, {}, "labels count as unknown: Expected `str`"),
        ("PersistentVolumeClaim", CLAIM, {}, "storage class counts as unknown: Expected `str | null`"),
    ],
)
def test_other_malformed_objects_mean_the_safest_that_they_may(
    kind: str, item: Any, known: dict[str, Any], warning: str
) -> None:
    """A class protects every priority; unknown labels and storage classes protect by themselves."""
    snapshot = read(kind, item)

    maps = {"Namespace": "namespaces", "PriorityClass": "priority_classes", "PersistentVolumeClaim": "claims"}
    assert getattr(snapshot, maps[kind]) == known
    assert snapshot.warnings[0].startswith(f"{kind} x is malformed and ")
    assert warning in snapshot.warnings[0]


@pytest.mark.parametrize(
    "document",
    [
        *(b"", b"<html>", b"[]", b"null", b"{}"),
        *({"items": each} for each in ([], None)),
        *({"kind": "PodList", **each} for each in ({}, {"items": 5}, {"items": {}}, {"metadata": None, "items": []})),
        {"kind": "PodList", "metadata": {"continue": "more"}, "items": None},
        *({"kind": "PodList", "metadata": {"remainingItemCount": 3}, "items": each} for each in ([], None)),
        {"kind": "Pod", "metadata": {"name": "a"}},
        {"kind": "NodeList", "apiVersion": "v1", "items": []},
        {"kind": "PodList", "apiVersion": "example.com/v1", "items": []},
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500},
        {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "items": []},
    ],
)
def test_what_is_not_a_list_of_the_kind_is_an_error(document: Any) -> None:
    """It must not pass for a cluster without such objects."""
    with pytest.raises(ValueError):
        Collection().collector("Pod").add_page(
            document if isinstance(document, bytes) else json.dumps(document).encode()
        )


def test_bytes_that_are_no_text_harm_their_own_object_only() -> None:
    """Whether they stand in a name or elsewhere."""
    collector = Collection().collector("Pod")

    token = collector.add_page(
        b'{"kind": "PodList", "items": [{"metadata": {"name": "\xff"}}, {"metadata": {"name": "a", "uid": "\xff"}},'
        b'{"metadata": {"name": "b"}}], "metadata": {"continue": "more"}}'
    )

    assert token == "more"
    assert [pod.name for pod in collector.items] == ["b"]
    assert collector.warnings[0].startswith("2 Pod objects (without a name, without a name): each is malformed")


@pytest.mark.parametrize(
    ("kind", "version", "bad"),
    [
        ("PodDisruptionBudget", "policy/v1", '"spec": {"selector": {"matchLabels": {"a": 1}}}'),
        ("Node", "v1", '"spec": {"taints": 5}'),
        ("Pod", "v1", '"spec": {"priority": "x"}'),
    ],
)
def test_no_depth_makes_an_object_disappear(kind: str, version: str, bad: str) -> None:
    """However deep it is nested, something stands for it, or the whole list is an error."""
    became = set()
    for depth in (*range(800, 1000), 100_000):  # how deep may be read depends on the version of Python
        deep = '{"a":' * depth + "1" + "}" * depth
        item = f'{{"metadata": {{"name": "p", "namespace": "n", "x": {deep}}}, {bad}}}'
        read_in = f'{{"kind": "{kind}List", "apiVersion": "{version}", "metadata": {{}}, "items": [{item}]}}'
        became.add(what_becomes_of(Collection().collector(kind), read_in.encode()))

    assert became == {"something stands for it", "an error"}


def what_becomes_of(collector: ListCollector[Any, Any], one: bytes) -> str:
    """Say what a list of one object comes to."""
    try:
        collector.add_page(one)
    except Unreadable:
        return "an error"
    return "something stands for it" if collector.items and not collector.lost else "it is lost"
