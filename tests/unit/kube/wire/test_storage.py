"""Claims and volumes as the API server writes them."""

from typing import Any

import pytest

from rebalancer.cluster.scheduler_inputs import Attachment, Claim, CsiNode, StorageCapacity, StorageClass, Volume
from rebalancer.cluster.selectors import NodeSelectorTerm, Requirement
from tests.make import selector
from tests.unit.kube.wire.documents import read


def claim(spec, **metadata):
    document = {"metadata": {"name": "data", "namespace": "shop", **metadata}, "spec": spec}
    return read("PersistentVolumeClaim", document).scheduler_inputs.claims["shop", "data"]


def volume(**fields):
    return read("PersistentVolume", {"metadata": {"name": "v1"}, **fields}).scheduler_inputs.volumes["v1"]


def test_a_claim_in_full():
    found = claim(
        {
            "storageClassName": "fast",
            "volumeName": "v1",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Ki"}},
            "selector": {"matchLabels": {"disk": "ssd"}},
            "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
        },
        uid="u1",
        deletionTimestamp="2026-01-02T00:00:00Z",
        annotations={
            "volume.kubernetes.io/selected-node": "n1",
            "pv.kubernetes.io/bind-completed": "yes",
        },
    )

    assert found == Claim(
        namespace="shop",
        name="data",
        uid="u1",
        storage_class="fast",
        volume="v1",
        bound=True,
        access_modes=frozenset({"ReadWriteOnce"}),
        requested=1024,
        selector=selector(disk="ssd"),
        selected_node="n1",
        filesystem=False,
        terminating=True,
        attributes_class="gold",
    )


def test_a_volume_in_full():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    found = volume(
        metadata={"name": "v1", "labels": {"disk": "ssd"}, "deletionTimestamp": "2026-01-02T00:00:00Z"},
        spec={
            "storageClassName": "fast",
            "capacity": {"storage": "1Ki"},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "claimRef": {"namespace": "shop", "name": "data", "uid": "u1"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "h1"},
            "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
        },
        status={"phase": "Bound"},
    )

    assert found == Volume(
        name="v1",
        labels={"disk": "ssd"},
        storage_class="fast",
        capacity=1024,
        access_modes=frozenset({"ReadWriteOnce"}),
        node_terms=(NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),),
        claim=("shop", "data", "u1"),
        phase="Bound",
        driver="csi.example.com",
        handle="h1",
        filesystem=False,
        terminating=True,
        attributes_class="gold",
    )


@pytest.mark.parametrize("spec", [{}, {"volumeMode": "Filesystem"}])
def test_what_a_claim_and_a_volume_do_not_say(spec):
    assert claim(spec) == Claim(namespace="shop", name="data")
    assert volume(spec=spec) == Volume(name="v1")


def test_a_claim_is_bound_once_the_binding_is_complete():
    """A volume that was only chosen may still be given to another."""
    assert not claim({"volumeName": "v1"}).bound
    assert not claim({}, annotations={"pv.kubernetes.io/bind-completed": "yes"}).bound


def test_nulls_count_as_absent():
    """As a server may write them; what names no namespace is in the default one."""
    nothing = dict.fromkeys(("storageClassName", "accessModes", "volumeAttributesClassName", "volumeMode"))

    assert claim({**nothing, "volumeName": None, "resources": None, "selector": None}, annotations=None) == Claim(
        namespace="shop", name="data"
    )
    assert volume(
        spec={**nothing, "capacity": None, "nodeAffinity": None, "claimRef": None, "csi": None}, status=None
    ) == Volume(name="v1")
    for namespace in (None, ""):
        found = read("PersistentVolumeClaim", {"metadata": {"name": "data", "namespace": namespace}, "spec": {}})
        assert found.scheduler_inputs.claims == {("default", "data"): Claim(namespace="default", name="data")}


def test_volumes_on_nodes():
    """How many a node takes, which are attached, and for which nodes a class makes them."""
    node = {
        "metadata": {"name": "n1", "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "a,,b"}},
        "spec": {"drivers": [{"name": "x", "allocatable": {"count": 3}}, {"name": "y", "allocatable": None}]},
    }
    attached = {"spec": {"attacher": "x", "nodeName": "n1", "source": {"persistentVolumeName": "v1"}}}
    made = {
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "x",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [
            {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]},
            {"matchLabelExpressions": None},
        ],
    }

    assert read("CSINode", node).scheduler_inputs.csi_nodes == {
        "n1": CsiNode(name="n1", limits={"x": 3, "y": None}, migrated=frozenset({"a", "b"}))
    }
    assert read("VolumeAttachment", attached).scheduler_inputs.attachments == (
        Attachment(node="n1", driver="x", volume="v1"),
    )
    assert read("StorageClass", made).scheduler_inputs.storage_classes == {
        "fast": StorageClass(
            name="fast",
            provisioner="x",
            waits=True,
            topologies=(NodeSelectorTerm((Requirement("zone", "In", ("a",)),)), NodeSelectorTerm(())),
            default=True,
        )
    }


@pytest.mark.parametrize("annotations", [{}, {"annotations": None}])
def test_nodes_and_classes_of_volumes_may_have_no_annotations(annotations: Any) -> None:
    """A node on which no driver runs, and a class that is not the default and makes volumes anywhere."""
    node = read("CSINode", {"metadata": {"name": "n1", **annotations}, "spec": {"drivers": None}})
    made = read("StorageClass", {"metadata": {"name": "slow", **annotations}, "provisioner": "x"})

    assert node.scheduler_inputs.csi_nodes == {"n1": CsiNode(name="n1")}
    assert made.scheduler_inputs.storage_classes == {"slow": StorageClass(name="slow", provisioner="x")}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (
            {"capacity": "2Ki", "maximumVolumeSize": "1Ki"},
            StorageCapacity(storage_class="fast", capacity=2048, largest=1024),
        ),
        ({"capacity": "2Ki"}, StorageCapacity(storage_class="fast", capacity=2048)),
        ({"maximumVolumeSize": "0"}, StorageCapacity(storage_class="fast", largest=0)),
        ({"capacity": None, "maximumVolumeSize": None}, StorageCapacity(storage_class="fast")),
    ],
)
def test_room_for_volumes(sizes: Any, expected: StorageCapacity) -> None:
    """A size that is not said differs from one of zero."""
    document = {"metadata": {"name": "c", "namespace": "x"}, "storageClassName": "fast", **sizes}

    assert read("CSIStorageCapacity", document).scheduler_inputs.storage_capacities == (expected,)
