"""Disks that pods name in their own volumes, as the API server writes them."""

import pytest

from rebalancer.cluster.pod import IscsiDisk
from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.unit.kube.wire.documents import pod_document, read, read_pod

RBD = {"monitors": ["10.0.0.1", "10.0.0.2"], "image": "data"}


@pytest.mark.parametrize("is_read_only", [False, True])
def test_what_a_disk_is_known_by(is_read_only):
    """Its name, and whether it is only read."""
    iscsi = {"iqn": "iqn.2001-04.com.example:disk", "readOnly": is_read_only}
    pod = read_pod(spec={"volumes": [{"name": "data", "iscsi": iscsi}]})

    assert pod.spec.placement.disks == (IscsiDisk("iqn.2001-04.com.example:disk", is_read_only),)


@pytest.mark.parametrize("kind", ["gcePersistentDisk", "awsElasticBlockStore", "rbd"])
def test_nobody_knows_where_a_pod_goes_that_has_a_volume_of_a_removed_kind(kind):
    """So it stays, and the reason names the kind."""
    spec = read_pod(spec={"volumes": [{"name": "data", kind: {}}]}).spec
    pod = make.pod("web-1", node="n1", placement=spec.placement)
    answer = make.cluster([make.node("n1"), make.node("n2")], [pod]).index(Simulation).ask(pod)

    assert answer.unknown == f"the pod has a volume of a kind that Kubernetes has removed ({kind})"


@pytest.mark.parametrize("volume", [{"projected": {"sources": []}}, {"emptyDir": {}}, {"rbd": None}])
def test_other_volumes_are_no_disks(volume):
    """What every pod has: a token, a scratch folder; and what is not there."""
    pod = read_pod(spec={"volumes": [{"name": "data", **volume}]})

    assert (pod.spec.problem, pod.spec.placement.disks, pod.spec.placement.removed_volumes) == ("", (), ())


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
