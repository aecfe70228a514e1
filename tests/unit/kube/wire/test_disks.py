"""Disks that pods name in their own volumes, as the API server writes them."""

import pytest

from rebalancer.cluster.placement import Disk
from tests.unit.kube.wire.documents import pod_document, read, read_pod

RBD = {"monitors": ["10.0.0.1", "10.0.0.2"], "image": "data"}


def names(*each: str) -> frozenset[str]:
    return frozenset(each)


@pytest.mark.parametrize(
    ("volume", "disk"),
    [
        ({"gcePersistentDisk": {"pdName": "one"}}, Disk("gcePersistentDisk", names("one"))),
        (
            {"gcePersistentDisk": {"pdName": "one", "readOnly": True}},
            Disk("gcePersistentDisk", names("one"), read_only=True),
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "vol-1"}},
            Disk("awsElasticBlockStore", names("vol-1"), shareable=False),
        ),
        (
            {"iscsi": {"iqn": "iqn.2001-04.com.example:disk", "readOnly": True}},
            Disk("iscsi", names("iqn.2001-04.com.example:disk"), read_only=True),
        ),
        ({"rbd": {**RBD, "pool": "fast"}}, Disk("rbd", names("10.0.0.1/fast/data", "10.0.0.2/fast/data"))),
        ({"rbd": RBD}, Disk("rbd", names("10.0.0.1/rbd/data", "10.0.0.2/rbd/data"))),
    ],
)
def test_what_a_disk_is_known_by(volume, disk):
    """Its name, each monitor of a Ceph cluster, the pool `rbd` where none is named; and whether it is only read."""
    pod = read_pod(spec={"volumes": [{"name": "data", **volume}]})

    assert pod.spec.placement.disks == (disk,)


@pytest.mark.parametrize("volume", [{"projected": {"sources": []}}, {"emptyDir": {}}, {"rbd": None}])
def test_other_volumes_are_no_disks(volume):
    """What every pod has: a token, a scratch folder; and what is not there."""
    pod = read_pod(spec={"volumes": [{"name": "data", **volume}]})

    assert (pod.spec.problem, pod.spec.placement.disks) == ("", ())


def test_a_pod_with_a_disk_is_read_like_any_other():
    """A disk of one's own is no reason to leave a pod alone."""
    spec = {"nodeName": "n1", "containers": [{"image": "web"}], "volumes": [{"name": "data", "rbd": RBD}]}
    found = read("Pod", pod_document(spec=spec))

    assert found.warnings == ()
    assert found.pods[0].spec.images == ("web",)


def test_images_that_are_mounted_count_as_images():
    """A node that has one already is the better place."""
    pod = read_pod(spec={"volumes": [{"name": "data", "image": {"reference": "model:1"}}]})

    assert pod.spec.placement.volume_images == ("model:1",)
