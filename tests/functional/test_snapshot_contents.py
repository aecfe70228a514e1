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

from rebalancer.kube.wire import annotations, collect, workloads
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.run.capture import kept, kept_fields
from tests.functional.objects import old_pods, two_nodes_with
from tests.functional.program import finish, wait_for
from tests.functional.test_interruption import arrival

CANARY = "canary of "
MODELS = {
    "Node": "V1Node",
    "Pod": "V1Pod",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
    "Namespace": "V1Namespace",
    "PriorityClass": "V1PriorityClass",
    **{kind: f"V1{kind}" for kind in sorted(SCHEDULER_KINDS)},
}
WIRES = {name: kind.wire for name, kind in collect._kinds().items()}
_METADATA = {
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.labels.key",
    "metadata.labels.key=",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
}
_CONTAINER = {"image", "name", "ports.protocol", "resources.claims.name", "resources.claims.request", "restartPolicy"}
_QUANTITIES = {f"resources.{group}.key{end}" for group in ("limits", "requests") for end in ("", "=")}
_SPEC = {
    "nodeName",
    "nodeSelector.key",
    "nodeSelector.key=",
    "overhead.key",
    "overhead.key=",
    "priorityClassName",
    "resourceClaims.name",
    "resources.claims.name",
    "resources.claims.request",
    *_QUANTITIES,
    *(f"{group}.{each}" for group in ("containers", "initContainers") for each in _CONTAINER | _QUANTITIES),
    "preemptionPolicy",
    "schedulerName",
    "schedulingGates.name",
    "volumes.awsElasticBlockStore.volumeID",
    "volumes.gcePersistentDisk.pdName",
    "volumes.image.reference",
    "volumes.iscsi.iqn",
    "volumes.name",
    "volumes.persistentVolumeClaim.claimName",
    "volumes.rbd.image",
    "volumes.rbd.monitors",
    "volumes.rbd.pool",
}
_OWNERS = {f"metadata.ownerReferences.{each}" for each in ("apiVersion", "kind", "name", "uid")}
_TEMPLATE = {"metadata.labels.key", "metadata.labels.key=", *(f"spec.{each}" for each in _SPEC)}
_SELECTOR = {
    "matchExpressions.key",
    "matchExpressions.operator",
    "matchExpressions.values",
    "matchLabels.key",
    "matchLabels.key=",
}
_CLASSES = {"spec.storageClassName", "spec.volumeAttributesClassName", "spec.volumeMode", "spec.accessModes"}
_WORKLOAD = {*_OWNERS, *(f"spec.selector.{each}" for each in _SELECTOR)}
_MADE = {f"spec.template.{each}" for each in _TEMPLATE}
#: Every text that may come through, by kind, and below `ANYTHING_BELOW`: rules of placement are made of labels.
MAY_COME = {
    "Node": {
        "status.images.names",
        "spec.taints.effect",
        "spec.taints.key",
        "spec.taints.value",
        *(f"status.{group}.key{end}" for group in ("allocatable", "capacity") for end in ("", "=")),
        "status.addresses.address",
        "status.addresses.type",
        *(f"status.conditions.{each}" for each in ("reason", "status", "type", "lastHeartbeatTime")),
        "status.conditions.lastTransitionTime",
        "status.nodeInfo.kubeletVersion",
    },
    "Pod": {
        *_OWNERS,
        *(f"spec.{each}" for each in _SPEC),
        "status.nominatedNodeName",
        *(f"status.conditions.{each}" for each in ("reason", "status", "type", "lastTransitionTime")),
        *(
            f"status.{group}Statuses.{each}"
            for group in ("container", "ephemeralContainer", "initContainer")
            for each in ("name", "state.terminated.reason", "state.waiting.reason", "lastState.terminated.reason")
        ),
        "status.phase",
        "status.qosClass",
        "status.reason",
        "status.startTime",
    },
    "PodDisruptionBudget": {
        "spec.minAvailable",
        "spec.maxUnavailable",
        *(f"spec.selector.{each}" for each in _SELECTOR),
        "spec.unhealthyPodEvictionPolicy",
        "status.disruptedPods.key",
        "status.disruptedPods.key=",
    },
    "Namespace": set(),
    "PriorityClass": set(),
    "PersistentVolumeClaim": {
        *_CLASSES,
        "spec.resources.requests.key",
        "spec.resources.requests.key=",
        *(f"spec.selector.{each}" for each in _SELECTOR),
        "spec.volumeName",
    },
    "PersistentVolume": {
        *_CLASSES,
        "spec.capacity.key",
        "spec.capacity.key=",
        *(f"spec.claimRef.{each}" for each in ("namespace", "name", "uid")),
        "spec.csi.driver",
        "spec.csi.volumeHandle",
        *(
            f"spec.nodeAffinity.required.nodeSelectorTerms.{group}.{each}"
            for group in ("matchExpressions", "matchFields")
            for each in ("key", "operator", "values")
        ),
        "status.phase",
    },
    "Service": {"spec.selector.key", "spec.selector.key="},
    "Deployment": {
        *("spec.strategy.type", "spec.strategy.rollingUpdate.maxSurge", "spec.strategy.rollingUpdate.maxUnavailable"),
    },
    "ReplicaSet": _WORKLOAD | _MADE,
    "ReplicationController": {*_OWNERS, *_MADE, "spec.selector.key", "spec.selector.key="},
    "StatefulSet": {*_WORKLOAD, *_MADE, "status.currentRevision", "status.updateRevision"},
    "Job": {*_MADE, "spec.podReplacementPolicy", "status.conditions.status", "status.conditions.type"},
    "StorageClass": {
        "allowedTopologies.matchLabelExpressions.key",
        "allowedTopologies.matchLabelExpressions.values",
        "provisioner",
        "volumeBindingMode",
    },
    "CSINode": {"spec.drivers.name"},
    "CSIDriver": set(),
    "CSIStorageCapacity": {
        "capacity",
        "maximumVolumeSize",
        *(f"nodeTopology.{each}" for each in _SELECTOR),
        "storageClassName",
    },
    "VolumeAttachment": {"spec.attacher", "spec.nodeName", "spec.source.persistentVolumeName"},
}
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
def test_of_all_texts_of_an_object_these_alone_come_through(kind):
    """Every field of the kind is filled with a text of its own; the list of those that may leave is in this test."""
    whole = every_field(MODELS[kind])

    came = {each for each in canaries(kept(whole, kept_fields()[kind])) if not each.startswith(ANYTHING_BELOW)}

    allowed = MAY_COME[kind] | _METADATA
    assert came == allowed, (came - allowed, allowed - came)
    assert len(set(canaries(whole))) > len(came)


@pytest.mark.parametrize("shape", [["canary of x"], {"canary of x": "canary of x"}, "canary of x"])
@pytest.mark.parametrize("kind", MODELS)
def test_what_has_the_wrong_shape_tells_nothing(kind, shape):
    """A spec that is a list, or a name that is a map: emptied, and so still malformed."""
    fields = kept_fields()[kind]

    assert list(canaries(kept({"metadata": {"name": {"a": shape}}, "spec": [shape], "status": shape}, fields))) == []
    assert list(canaries(kept(shape if isinstance(shape, str) else [shape], fields))) == []


@pytest.mark.parametrize("kind", WIRES)
def test_whatever_is_read_of_an_object_is_kept(kind):
    """A field that a decision looks at and a snapshot lacks would make an offline run differ from a live one."""
    lost = [path for path in read_paths(WIRES[kind]) if not is_kept(path, kept_fields()[kind])]

    live_only = {("metadata", "resourceVersion"), ("metadata", "deletionGracePeriodSeconds")}
    assert set(lost) == (live_only if kind == "Pod" else set())


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "StatefulSet", "Job"])
def test_whatever_is_read_of_a_template_is_kept(kind):
    """It is decoded by itself, as it is not needed of every object."""
    fields = kept_fields()[kind]["spec"]["template"]
    lost = [path for path in read_paths(workloads.TemplateWire) if not is_kept(path, fields)]

    assert lost == []


def read_paths(wire: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field that a wire struct decodes."""
    found = msgspec.inspect.type_info(wire) if isinstance(wire, type) else wire
    if isinstance(found, msgspec.inspect.UnionType):
        for each in found.types:
            yield from read_paths(each, path)
    elif isinstance(found, msgspec.inspect.ListType):
        yield from read_paths(found.item_type, path)
    elif isinstance(found, msgspec.inspect.StructType):
        for each in found.fields:
            yield from read_paths(each.type, (*path, each.encode_name))
    elif not isinstance(found, msgspec.inspect.NoneType):
        yield path


def is_kept(path: tuple[str, ...], fields: Any) -> bool:
    if "*" in fields or not path:
        return True
    return path[0] in fields and is_kept(path[1:], fields[path[0]])


def test_annotations_that_mean_something_are_kept():
    """And no others."""
    told = dict.fromkeys(annotations.ANNOTATIONS, "yes")

    whole = {"metadata": {"annotations": {**told, "kubectl.kubernetes.io/last-applied-configuration": "secret"}}}

    assert kept(whole, kept_fields()["Pod"]) == {"metadata": {"annotations": told}}
    told = dict.fromkeys(annotations.NODE_ANNOTATIONS, "yes")
    assert kept({"metadata": {"annotations": {**told, "x": "secret"}}}, kept_fields()["Node"]) == {
        "metadata": {"annotations": told}
    }


def write(server, rebalancer, file):
    return rebalancer("snapshot", "--kubeconfig", server.kubeconfig(rebalancer.folder), "--output", file)


def test_a_snapshot_is_for_its_owner_alone(server, rebalancer):
    """Mode 0600, also where a file with another mode stood before; and nothing else is left in the folder."""
    for each in two_nodes_with(*old_pods("a")):
        server.add(each)
    file = rebalancer.folder / "folder" / "cluster.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)

    assert write(server, rebalancer, file).exit_code == 0

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_link_keeps_being_one(server, rebalancer):
    """The file that it points to is replaced."""
    for each in two_nodes_with():
        server.add(each)
    file, link = rebalancer.folder / "file.json", rebalancer.folder / "link.json"
    link.symlink_to(file)

    assert write(server, rebalancer, link).exit_code == 0

    assert link.is_symlink()
    assert json.loads(file.read_text())["kind"] == "List"


def test_a_snapshot_that_is_interrupted_leaves_the_old_file(server, rebalancer):
    """Whole, and nothing beside it: SIGTERM while the last list is read ends the program with 143."""
    for each in two_nodes_with():
        server.add(each)
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


def test_a_snapshot_that_cannot_be_written_leaves_nothing(server, rebalancer):
    """A folder that is not there: exit code 2, in a line."""
    for each in two_nodes_with():
        server.add(each)

    outcome = write(server, rebalancer, rebalancer.folder / "nowhere" / "cluster.json")

    assert outcome.exit_code == 2
    assert "cannot be written: No such file" in outcome.stderr


def test_metrics_that_are_no_list_leave_usage_out(server, rebalancer):
    """With a warning, and all the rest is written."""
    server.fail("GET", "/apis/metrics.k8s.io/v1beta1/nodes", status=200, body={"kind": "List", "items": []})
    path = rebalancer.folder / "cluster.json"

    outcome = rebalancer("snapshot", "--kubeconfig", server.kubeconfig(rebalancer.folder), "-o", path)

    assert outcome.exit_code == 0
    assert "usage is left out: " in outcome.stderr
    assert "GET /apis/metrics.k8s.io/v1beta1/nodes gives no list of objects" in outcome.stderr
    assert path.exists()
