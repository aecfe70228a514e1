"""What `rebalancer snapshot` writes, what it leaves in the cluster, and how the file comes about."""

import json
import re
import signal
import stat
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from kubernetes import client as api

from rebalancer.kube.wire import collect, workloads
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.run.capture import kept, kept_fields
from tests.functional.objects import old_pods, two_nodes_with
from tests.functional.program import arrival, finish, wait_for

CANARY = "canary of "
MODELS = {
    "Node": "V1Node",
    "Pod": "V1Pod",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
    "Namespace": "V1Namespace",
    "PriorityClass": "V1PriorityClass",
    **{kind: f"V1{kind}" for kind in sorted(SCHEDULER_KINDS)},
}
TEMPLATES = ("ReplicaSet", "ReplicationController", "StatefulSet", "Job")
WIRES = {name: kind.wire for name, kind in collect.Collection()._kinds.items()}
#: What comes along though no decision looks at it.
BESIDE = {
    *(f"metadata.{each}" for each in ("creationTimestamp", "deletionTimestamp", "name", "namespace", "uid")),
    *("metadata.labels.key", "metadata.labels.key=", "metadata.ownerReferences.apiVersion"),
    *(f"spec.{each}.name" for each in ("containers", "initContainers")),
    *("spec.minAvailable", "spec.maxUnavailable", "status.conditions.reason"),
    *(
        f"status.{group}Statuses.{each}"
        for group in ("container", "ephemeralContainer", "initContainer")
        for each in ("name", "lastState.terminated.reason")
    ),
}
#: What may hold anything at all.
SECRET = {"env", "envFrom", "command", "args", "annotations", "path", "secretName", "lifecycle", "livenessProbe"}
#: Rules of placement are made of labels.
ANYTHING_BELOW = tuple(
    f"{spec}.{rules}."
    for spec in ("spec", "spec.template.spec")
    for rules in ("affinity", "tolerations", "topologySpreadConstraints")
)


def every_field(model: str, path: str = "") -> Any:
    """Return an object of the API with each of its fields filled, each text a canary that names its path."""
    if several := re.fullmatch(r"[Ll]ist\[(.*)\]", model):
        return [every_field(several[1], path)]
    if named := re.fullmatch(r"[Dd]ict[\[(]str, (.*)[\])]", model):
        return {f"{CANARY}{path}.key": every_field(named[1], f"{path}.key=")}
    if model in ("str", "object", "datetime"):
        return f"{CANARY}{path}"
    if model in ("int", "float", "bool"):
        return {"int": 1, "float": 1.5, "bool": True}[model]
    kind = getattr(api, model)
    return {
        key: every_field(kind.openapi_types[name], f"{path}.{key}".removeprefix("."))
        for name, key in kind.attribute_map.items()
    }


def canaries(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from canaries(key)
            yield from canaries(each)
    elif isinstance(value, list):
        for each in value:
            yield from canaries(each)
    elif isinstance(value, str) and value.startswith(CANARY):
        yield value.removeprefix(CANARY)


@pytest.mark.parametrize("kind", MODELS)
def test_of_all_texts_of_an_object_those_alone_come_through_that_are_read(kind):
    """Every field of the kind is filled with a text of its own; of a map that is read all below it comes along."""
    whole = every_field(MODELS[kind])
    read = [".".join(path) for path in read_paths(WIRES[kind])]
    read += [f"spec.template.{'.'.join(path)}" for path in read_paths(workloads.TemplateWire) if kind in TEMPLATES]

    came = {each for each in canaries(kept(whole, kept_fields()[kind])) if not each.startswith(ANYTHING_BELOW)}

    assert not [each for each in came - BESIDE if not any(f"{each}.".startswith(f"{path}.") for path in read)]
    assert not [each for each in came if SECRET & set(each.split("."))]
    assert {"metadata.name", "metadata.labels.key"} < came < set(canaries(whole))


@pytest.mark.parametrize("shape", [["canary of x"], {"canary of x": "canary of x"}, "canary of x"])
@pytest.mark.parametrize("kind", MODELS)
def test_what_has_the_wrong_shape_tells_nothing(kind, shape):
    """A spec that is a list, or a name that is a map: emptied, and so still malformed."""
    fields = kept_fields()[kind]

    assert list(canaries(kept({"metadata": {"name": {"a": shape}}, "spec": [shape], "status": shape}, fields))) == []
    assert list(canaries(kept(shape if isinstance(shape, str) else [shape], fields))) == []


@pytest.mark.parametrize("kind", WIRES)
def test_whatever_is_read_of_an_object_is_kept(kind):
    """A field that a decision looks at and a snapshot lacks would make an offline run differ from a live one.

    A template is decoded by itself, as it is not needed of every object.
    """
    fields = kept_fields()[kind]
    lost = {path for path in read_paths(WIRES[kind]) if not is_kept(path, fields)}
    if kind in TEMPLATES:
        lost |= {path for path in read_paths(workloads.TemplateWire) if not is_kept(path, fields["spec"]["template"])}

    live_only = {("metadata", "resourceVersion"), ("metadata", "deletionGracePeriodSeconds")}
    assert lost == (live_only if kind == "Pod" else set())


def read_paths(wire: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field that a wire struct decodes."""
    found = msgspec.inspect.type_info(wire) if isinstance(wire, type) else wire
    if isinstance(found, msgspec.inspect.UnionType):
        for each in found.types:
            yield from read_paths(each, path)
    elif isinstance(found, msgspec.inspect.ListType):
        yield from read_paths(found.item_type, path)
    elif isinstance(found, msgspec.inspect.StructType) and found.fields:
        for each in found.fields:
            yield from read_paths(each.type, (*path, each.encode_name))
    elif not isinstance(found, msgspec.inspect.NoneType):
        yield path


def is_kept(path: tuple[str, ...], fields: Any) -> bool:
    if "*" in fields or not path:
        return True
    return path[0] in fields and is_kept(path[1:], fields[path[0]])


@pytest.fixture
def server(server):
    server.add(*two_nodes_with(*old_pods("a")))
    return server


def test_a_snapshot_is_for_its_owner_alone(server, rebalancer):
    """Mode 0600, also where a file with another mode stood before; a link stays one, and nothing is left beside."""
    file, link = rebalancer.folder / "folder" / "cluster.json", rebalancer.folder / "link.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    link.symlink_to(file)

    assert rebalancer.at(server, "snapshot", "--output", link).exit_code == 0

    assert (link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == (True, 0o600)
    assert json.loads(file.read_text())["kind"] == "List"
    assert list(file.parent.iterdir()) == [file]
    nowhere = rebalancer.at(server, "snapshot", "--output", rebalancer.folder / "nowhere" / "cluster.json")
    assert (nowhere.exit_code, "cannot be written: No such file" in nowhere.stderr) == (2, True)


def test_a_snapshot_that_is_interrupted_leaves_the_old_file(server, rebalancer):
    """Whole, and nothing beside it: SIGTERM while the last list is read ends the program with 143."""
    file = rebalancer.folder / "folder" / "cluster.json"
    file.parent.mkdir()
    file.write_text("the old one")
    asked = arrival(server, "GET", "*/persistentvolumeclaims")
    server.stall("GET", "*/persistentvolumeclaims")

    kubeconfig = server.kubeconfig(rebalancer.folder)
    process = rebalancer.start("snapshot", "--kubeconfig", kubeconfig, "--output", file)
    wait_for(asked, process)
    process.send_signal(signal.SIGTERM)

    assert finish(process).exit_code == 143
    assert file.read_text() == "the old one"
    assert list(file.parent.iterdir()) == [file]


def test_metrics_that_are_no_list_leave_usage_out(server, rebalancer):
    """With a warning, and all the rest is written."""
    server.fail("GET", "/apis/metrics.k8s.io/v1beta1/nodes", status=200, body={"kind": "List", "items": []})
    path = rebalancer.folder / "cluster.json"

    outcome = rebalancer.at(server, "snapshot", "--output", path)

    assert outcome.exit_code == 0
    assert "usage is left out: " in outcome.stderr
    assert "GET /apis/metrics.k8s.io/v1beta1/nodes gives no list of objects" in outcome.stderr
    assert path.exists()
