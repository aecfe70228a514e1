"""What replaces pods: the templates of their owners, and when nobody knows."""

from typing import Any

import pytest

from rebalancer.cluster.scheduler_inputs import Notes, Template
from tests.make import selector
from tests.unit.kube.wire.documents import read_lists as read

SPEC = {"containers": [{"image": "web:1", "resources": {"requests": {"cpu": "100m"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": SPEC}


def workload(name: str = "web", *, owner: str = "", status: Any = None, metadata: Any = None, **spec: Any) -> Any:
    """A ReplicaSet, or another kind like it; its uid is its name's, and what is None in its status is left out."""
    owners = [{"kind": owner, "name": "web", "uid": "uid of web", "controller": True}] if owner else []
    named = {"name": name, "namespace": "shop", "uid": f"uid of {name}", "ownerReferences": owners}
    fields = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec}
    known = {"replicas": 2, "updatedReplicas": 2, "observedGeneration": 2, **(status or {})}
    metadata = {**named, "generation": 2, **(metadata or {})}
    return {"metadata": metadata, "spec": fields, "status": {k: v for k, v in known.items() if v is not None}}


def template(kind: str, item: Any, **others: list[Any]) -> Template | None:
    """The template of one workload, None where nothing is known of it."""
    found = read(**{kind: [item]}, **others).scheduler_inputs.templates
    assert found is not None
    return found.get((kind, item["metadata"]["uid"]))


def known(kind: str, item: Any, **others: list[Any]) -> str:
    """Whether what replaces its pods is known."""
    found = template(kind, item, **others)
    return "nothing" if found is None else "changing" if found.changing else "known"


def test_a_template_is_read_as_pods_are() -> None:
    """Labels, requests, claims that it names, and whether pods get claims of their own."""
    volumes = [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {}}]
    made = {"metadata": {"labels": {"app": "web"}}, "spec": {**SPEC, "volumes": volumes}}

    found = template("ReplicaSet", workload(template=made))

    assert found is not None
    assert (found.labels, found.spec.requests, found.claims) == ({"app": "web"}, {"cpu": 100}, ("data",))
    assert (found.makes_claims, found.changing, found.only_failed) == (True, False, False)
    for bare in ({"spec": SPEC}, {"metadata": {"labels": None}, "spec": SPEC}):
        assert (found := template("Job", workload(template=bare)))
        assert found.labels == {}


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
@pytest.mark.parametrize(
    ("labels", "expected"), [({"app": "web"}, selector(app="web")), ({}, None), (None, None)], ids=str
)
def test_a_selector_that_is_a_map_of_labels(kind: str, labels: Any, expected: Any) -> None:
    """An empty one selects nothing; what names no namespace is in the default one."""
    document = {"metadata": {"name": "web", "namespace": None}, "spec": {"selector": labels}}
    found = read(**{kind: [document]}).scheduler_inputs

    services = found.services if kind == "Service" else found.replication_controllers
    assert services == {("default", "web"): expected}


def test_objects_of_two_namespaces_are_told_apart() -> None:
    """A Service selects pods of its own namespace."""
    documents = [{"metadata": {"name": "web", "namespace": each}, "spec": {"selector": {"app": each}}} for each in "ab"]

    assert read(Service=documents).scheduler_inputs.services == {(each, "web"): selector(app=each) for each in "ab"}


def test_equal_specs_are_one() -> None:
    """Templates and pods share what is equal, so that answers about it are kept once."""
    pod = {"metadata": {"name": "a"}, "spec": SPEC}
    snapshot = read(Pod=[pod], ReplicaSet=[workload("a"), workload("b")])

    templates = snapshot.scheduler_inputs.templates or {}
    assert {id(each.spec) for each in templates.values()} == {id(snapshot.pods[0].spec)}


def condition(name: str, status: str = "True") -> Any:
    return {"status": {"conditions": [{"type": name, "status": status}]}}


def revisions(current: str, update: str) -> Any:
    return {"status": {"currentRevision": current, "updateRevision": update}}


DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        # a template counts, unless there are pods to lose; who has and wants none needs no template
        ("ReplicaSet", {}, "known"),
        ("ReplicaSet", {"status": {"replicas": 1}}, "known"),
        ("ReplicaSet", {"replicas": 0, "status": {"replicas": 0}}, "nothing"),
        ("ReplicaSet", {"status": {"replicas": 0}}, "known"),
        ("ReplicaSet", {"replicas": 0}, "changing"),
        ("ReplicaSet", {"replicas": 1}, "changing"),
        # one is wanted if nothing is said
        ("ReplicaSet", {"replicas": None, "status": {"replicas": 1}}, "known"),
        ("ReplicaSet", {"replicas": None}, "changing"),
        ("ReplicaSet", {"template": None}, "nothing"),
        # by files that leave out the uid no pod can be told to be its
        ("ReplicaSet", {"metadata": {"uid": ""}}, "nothing"),
        # a partition keeps some pods at the old revision, which is the same one while no rollout is under way
        ("StatefulSet", revisions("a", "a"), "known"),
        ("StatefulSet", revisions("a", "b"), "changing"),
        ("StatefulSet", {"status": {"observedGeneration": 1}}, "changing"),
        ("StatefulSet", {"replicas": 1}, "changing"),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, "known"),
        ("StatefulSet", DELETED, "changing"),
        # a Job that makes no more pods; an evicted one counts as failed, unless rules or an index may forgive it
        ("Job", DELETED, "nothing"),
        ("Job", condition("Complete"), "nothing"),
        ("Job", condition("Suspended"), "nothing"),
        ("Job", condition("Suspended", "False"), "known"),
        ("Job", {"backoffLimit": 0}, "nothing"),
        ("Job", {"backoffLimit": 1}, "known"),
        ("Job", {"backoffLimit": 6, "status": {"failed": 5}}, "known"),
        ("Job", {"backoffLimit": 6, "status": {"failed": 6}}, "nothing"),
        ("Job", {"backoffLimit": 0, "podFailurePolicy": {"rules": []}}, "known"),
        ("Job", {"backoffLimit": 0, "backoffLimitPerIndex": 1}, "known"),
        # while old pods of a Deployment are left nobody knows what its ReplicaSets bring; of numbers a zero is left out
        ("Deployment", {}, "known"),
        ("Deployment", {"status": {"updatedReplicas": 1}}, "changing"),
        ("Deployment", {"status": {"replicas": 1, "updatedReplicas": None}}, "changing"),
        ("Deployment", {"status": {"observedGeneration": 1}}, "changing"),
        ("Deployment", {"status": {"replicas": 1, "updatedReplicas": 1}}, "known"),
    ],
)
def test_whether_it_is_known_what_replaces_the_pods_of(kind: str, fields: Any, expected: str) -> None:
    item = workload(**fields)
    of_deployment = known("ReplicaSet", workload("web-1", owner="Deployment"), Deployment=[item])

    assert (of_deployment if kind == "Deployment" else known(kind, item)) == expected


@pytest.mark.parametrize(("generation", "expected"), [({"generation": 1}, "changing"), ({}, "known")])
def test_generations_that_are_not_said_count_as_none(generation: dict[str, int], expected: str) -> None:
    """A controller that has not reported is behind the first generation; files without generations are settled."""
    metadata = {"name": "web", "namespace": "shop", "uid": "uid of web", **generation}
    fields = {"metadata": metadata, "spec": workload()["spec"], "status": {"replicas": 2, "updatedReplicas": 2}}

    assert known("StatefulSet", fields) == expected
    assert known("ReplicaSet", workload("web-1", owner="Deployment"), Deployment=[fields]) == expected


def rolling(surge: object, unavailable: object) -> Any:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        (rolling("25%", "25%"), True),
        (rolling(1, 0), True),
        (rolling("1%", "99%"), True),
        (rolling(0, 1), False),
        (rolling("0%", 0), False),
        (rolling(1, 1), False),
        (rolling(1, "100%"), False),
        (rolling("many", "none"), False),
        ({"strategy": {"type": "Recreate"}}, False),
        ({"replicas": 2}, False),
        ({"paused": True}, False),
        ({"status": {"replicas": 2}}, False),
        ({"status": {"observedGeneration": 1}}, False),
    ],
)
def test_which_deployments_have_a_second_pod_before_the_first_one_goes(fields: Any, expected: bool) -> None:
    """One replica, in no rollout, with a surge of one and nothing unavailable; of one pod 25 % are one, or none."""
    fields = {"replicas": 1, **fields, "status": {"replicas": 1, "updatedReplicas": 1, **fields.get("status", {})}}
    found = read(Deployment=[workload(**fields)]).scheduler_inputs.surging

    assert found == ({("shop", "Deployment/web")} if expected else set())


@pytest.mark.parametrize("others", [{}, {"Deployment": []}], ids=["not read", "gone"])
def test_a_deployment_that_is_not_known_tells_nothing(others: dict[str, list[Any]]) -> None:
    """It may be rolling out, so nothing is known of its ReplicaSets."""
    assert known("ReplicaSet", workload("web-1", owner="Deployment"), **others) == "nothing"


@pytest.mark.parametrize(("sibling_pods", "expected"), [(0, "known"), (1, "changing")])
def test_what_else_looks_after_replica_sets_shows_in_these(sibling_pods: int, expected: str) -> None:
    """A Rollout moves pods from one ReplicaSet to another: while both have some nobody knows what comes."""
    first = workload("web-1", owner="Rollout")
    second = workload("web-2", owner="Rollout", replicas=sibling_pods, status={"replicas": sibling_pods})

    found = read(ReplicaSet=[first, second]).scheduler_inputs.templates or {}

    assert found["ReplicaSet", "uid of web-1"].changing is (expected == "changing")


@pytest.mark.parametrize(
    ("spec", "only_failed"),
    [
        *(({"podReplacementPolicy": policy}, policy == "Failed") for policy in (None, "TerminatingOrFailed", "Failed")),
        ({"podFailurePolicy": {"rules": []}}, True),
    ],
)
def test_a_job_may_wait_for_the_end_of_a_pod(spec: Any, only_failed: bool) -> None:
    """So it does where its policy says Failed, which rules on failures imply."""
    found = template("Job", workload(**spec))

    assert found is not None
    assert found.only_failed is only_failed


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize(
    "made",
    [
        {**TEMPLATE, "metadata": {"labels": {"app": 1}}},
        {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}},
        {"spec": {"tolerations": {}}},
        ["spec"],
    ],
)
def test_a_malformed_template_makes_its_pods_unknown_and_no_others(kind: str, made: Any) -> None:
    """A warning names it; what it selects by still counts, and so does our pause."""
    paused = {"annotations": {"kube-rebalancer/pause": "true"}}
    snapshot = read(**{kind: [workload("bad", template=made, metadata=paused), workload("good")]})

    scheduler_inputs = snapshot.scheduler_inputs
    selectors = {"ReplicaSet": scheduler_inputs.replica_sets, "StatefulSet": scheduler_inputs.stateful_sets}[kind]
    assert set(scheduler_inputs.templates or {}) == {(kind, "uid of good")}
    assert set(selectors or {}) == {("shop", "bad"), ("shop", "good")}
    assert scheduler_inputs.notes == {("shop", f"{kind}/bad"): Notes(pause="true")}
    (warning,) = snapshot.warnings
    assert warning.startswith(f"{kind} shop/bad is malformed and what replaces its pods is unknown: ")


@pytest.mark.parametrize(
    ("kind", "item", "field"),
    [
        ("Service", {"metadata": {"name": "bad", "namespace": "shop"}, "spec": {"selector": []}}, "services"),
        ("ReplicaSet", workload("bad", selector={"matchExpressions": [{"operator": "Near"}]}), "replica_sets"),
        ("StatefulSet", workload("bad", selector=[]), "stateful_sets"),
        ("ReplicationController", workload("bad", template=[]), "replication_controllers"),
        ("PersistentVolume", {"metadata": {"name": "bad"}, "spec": {"capacity": {"storage": "lots"}}}, "volumes"),
        ("CSIStorageCapacity", {"metadata": {"name": "bad"}, "capacity": "lots"}, "storage_capacities"),
    ],
)
def test_a_kind_with_an_object_that_cannot_be_read_counts_as_not_read(kind: str, item: Any, field: str) -> None:
    """Any pod's answer may depend on that object, so none is given without it; a warning says so."""
    snapshot = read(**{kind: [item]})

    assert getattr(snapshot.scheduler_inputs, field) is None
    assert " is malformed and its whole kind counts as not read: " in snapshot.warnings[0]


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("Job", workload("bad", template=[])),
        ("Job", workload("bad", backoffLimit="six")),
        ("Deployment", {"metadata": {"name": "bad"}, "status": {"replicas": "two"}}),
    ],
)
def test_a_malformed_job_or_deployment_harms_no_other(kind: str, item: Any) -> None:
    """What hangs on it is unknown, and a warning says so."""
    snapshot = read(Job=[workload("good"), *[item] * (kind == "Job")], Deployment=[item] * (kind == "Deployment"))

    assert set(snapshot.scheduler_inputs.templates or {}) == {("Job", "uid of good")}
    assert f"{kind} " in snapshot.warnings[0]
    assert " is malformed and what replaces its pods is unknown: " in snapshot.warnings[0]


def test_nothing_read_is_not_nothing_there() -> None:
    """Without a list of owners the templates are unknown; with an empty one there are none."""
    assert read(Node=[]).scheduler_inputs.templates is None
    assert read(Job=[]).scheduler_inputs.templates == {}
