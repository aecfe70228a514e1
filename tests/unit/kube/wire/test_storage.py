"""Claims and volumes as the API server writes them."""

from typing import Any

import pytest

from rebalancer.cluster.scheduler_inputs import Attachment, Claim, CsiNode, StorageCapacity, StorageClass, Volume
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from tests.make import selector
from tests.unit.kube.wire.documents import read

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def claim(spec, **metadata):
    document = {"metadata": {"name": "data", "namespace": "shop", **metadata}, "spec": spec}
    return read("PersistentVolumeClaim", document).scheduler_inputs.claims["shop", "data"]


def volume(**fields):
    return read("PersistentVolume", {"metadata": {"name": "v1"}, **fields}).scheduler_inputs.volumes["v1"]


CLASSES = {"storageClassName": "fast", "volumeAttributesClassName": "gold"}
SHARED = {**CLASSES, "accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}
READ = {"storage_class": "fast", "attributes_class": "gold", "access_modes": {"ReadWriteOnce"}, "filesystem": False}
DELETED = {"deletionTimestamp": "2026-01-02T00:00:00Z"}
ZONE = (NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),)


def test_a_claim_in_full():
    spec = {**SHARED, "volumeName": "v1", "resources": {"requests": {"storage": "1Ki"}}}
    annotations = {**BOUND, "volume.kubernetes.io/selected-node": "n1"}
    found = claim({**spec, "selector": {"matchLabels": {"disk": "ssd"}}}, uid="u1", annotations=annotations, **DELETED)

    bound = {"volume": "v1", "bound": True, "selected_node": "n1", "terminating": True}
    named = {"namespace": "shop", "name": "data", "uid": "u1"}
    assert found == Claim(requested=1024, selector=selector(disk="ssd"), **named, **READ, **bound)


def test_a_volume_in_full():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    reference = {"namespace": "shop", "name": "data", "uid": "u1"}
    csi = {"driver": "csi.example.com", "volumeHandle": "h1"}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    spec = {**SHARED, "capacity": {"storage": "1Ki"}, "nodeAffinity": affinity, "claimRef": reference, "csi": csi}
    metadata = {"name": "v1", "labels": {"disk": "ssd"}, **DELETED}
    found = volume(metadata=metadata, spec=spec, status={"phase": "Bound"})

    where = {"claim": ("shop", "data", "u1"), "driver": "csi.example.com", "handle": "h1", "node_terms": ZONE}
    state = {"labels": {"disk": "ssd"}, "capacity": 1024, "phase": "Bound", "terminating": True}
    assert found == Volume(name="v1", **READ, **where, **state)


NULLS = dict.fromkeys(("storageClassName", "accessModes", "volumeAttributesClassName", "volumeMode"))
NO_CLAIM = NULLS | dict.fromkeys(("volumeName", "resources", "selector"))
NO_VOLUME = NULLS | dict.fromkeys(("capacity", "nodeAffinity", "claimRef", "csi"))


def test_what_a_claim_and_a_volume_do_not_say():
    """Nulls count as absent, as a server may write them."""
    for spec in ({}, {"volumeMode": "Filesystem"}):
        assert claim(spec) == claim(NO_CLAIM, annotations=None) == Claim(namespace="shop", name="data")
        assert volume(spec=spec) == volume(spec=NO_VOLUME, status=None) == Volume(name="v1")


@pytest.mark.parametrize("namespace", [None, ""])
def test_what_names_no_namespace_is_in_the_default_one(namespace):
    found = read("PersistentVolumeClaim", {"metadata": {"name": "data", "namespace": namespace}})
    assert found.scheduler_inputs.claims == {("default", "data"): Claim(namespace="default", name="data")}


def test_a_claim_is_bound_once_the_binding_is_complete():
    """A volume that was only chosen may still be given to another."""
    assert not claim({"volumeName": "v1"}).bound
    assert not claim({}, annotations=BOUND).bound


def inputs(kind: str, document: Any) -> Any:
    return read(kind, document).scheduler_inputs


def test_volumes_on_nodes() -> None:
    """How many a node takes, which are attached, and for which nodes a class makes them."""
    drivers = [{"name": "x", "allocatable": {"count": 3}}, {"name": "y", "allocatable": None}]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "a,,b"}
    node = {"metadata": {"name": "n1", "annotations": annotations}, "spec": {"drivers": drivers}}
    attached = {"spec": {"attacher": "x", "nodeName": "n1", "source": {"persistentVolumeName": "v1"}}}
    topologies = [{"matchLabelExpressions": each} for each in ([{"key": "zone", "values": ["a"]}], None)]
    default = {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    made = {"metadata": default, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}

    limits, terms = {"x": 3, "y": None}, (*ZONE, NodeSelectorTerm(()))
    assert inputs("CSINode", node).csi_nodes == {
        "n1": CsiNode(name="n1", limits=limits, migrated=frozenset({"a", "b"}))
    }
    assert inputs("VolumeAttachment", attached).attachments == (Attachment(node="n1", driver="x", volume="v1"),)
    assert inputs("StorageClass", {**made, "allowedTopologies": topologies}).storage_classes == {
        "fast": StorageClass(name="fast", provisioner="x", waits=True, topologies=terms, default=True)
    }


@pytest.mark.parametrize("annotations", [{}, {"annotations": None}])
def test_nodes_and_classes_of_volumes_may_have_no_annotations(annotations: Any) -> None:
    """A node on which no driver runs, and a class that is not the default and makes volumes anywhere."""
    node = {"metadata": {"name": "n1", **annotations}, "spec": {"drivers": None}}
    made = {"metadata": {"name": "slow", **annotations}, "provisioner": "x"}

    assert inputs("CSINode", node).csi_nodes == {"n1": CsiNode(name="n1")}
    assert inputs("StorageClass", made).storage_classes == {"slow": StorageClass(name="slow", provisioner="x")}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"capacity": "2Ki", "maximumVolumeSize": "1Ki"}, {"capacity": 2048, "largest": 1024}),
        ({"capacity": "2Ki"}, {"capacity": 2048}),
        ({"maximumVolumeSize": "0"}, {"largest": 0}),
        ({"capacity": None, "maximumVolumeSize": None}, {}),
    ],
)
def test_room_for_volumes(sizes: Any, expected: Any) -> None:
    """A size that is not said differs from one of zero."""
    document = {"metadata": {"name": "c", "namespace": "x"}, "storageClassName": "fast", **sizes}

    found = inputs("CSIStorageCapacity", document).storage_capacities
    assert found == (StorageCapacity(storage_class="fast", **expected),)
