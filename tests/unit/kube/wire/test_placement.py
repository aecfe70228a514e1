"""What the scheduler reads of a pod beside its requests."""

import pytest

from rebalancer.cluster.pod import ContainerCpu, HostPort, IscsiDisk, PodAffinityTerm, WeightedPodTerm
from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.make import selector
from tests.unit.kube.wire.documents import read_pod

ZONE = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaces": ["shop"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["hash"],
    "mismatchLabelKeys": ["tenant"],
}
TERM = PodAffinityTerm("zone", selector(app="web"), ("shop",), selector(team="a"), ("hash",), ("tenant",))
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placement(**spec):
    pod = read_pod(spec=spec)
    assert not pod.problem
    return pod.spec.placement


def test_pods_to_be_near_and_pods_to_be_away_from():
    found = placement(
        affinity={
            "podAffinity": {REQUIRED: [ZONE], PREFERRED: [{"weight": 3, "podAffinityTerm": ZONE}]},
            "podAntiAffinity": {PREFERRED: [{"weight": 7, "podAffinityTerm": {"topologyKey": "host"}}]},
        }
    )

    assert found.affinity == (TERM,)
    assert found.preferred_affinity == (WeightedPodTerm(3, TERM),)
    assert found.preferred_anti_affinity == (WeightedPodTerm(7, PodAffinityTerm("host", None)),)


def test_a_required_anti_affinity_is_read_like_the_rest():
    pod = read_pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [ZONE]}}})

    assert pod.spec.anti_affinity == (TERM,)


def test_a_preference_without_a_weight_weighs_nothing():
    found = read_pod(
        spec={
            "affinity": {
                "podAffinity": {PREFERRED: [{"podAffinityTerm": ZONE}]},
                "nodeAffinity": {PREFERRED: [{"preference": {}}]},
            }
        }
    ).spec

    assert found.placement.preferred_affinity == (WeightedPodTerm(0, TERM),)
    assert [each.weight for each in found.preferred] == [0]


def test_ports_of_the_node():
    """Those of containers and of sidecars apart; a container's own port takes none of the node's."""
    ports = [{"containerPort": 80}, {"hostPort": 0}, {"hostPort": 80, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    init = [{"restartPolicy": "Always", "ports": [{"hostPort": 81}]}, {"ports": [{"hostPort": 82}]}]

    found = placement(containers=[{"ports": ports}, {"ports": None}], initContainers=init)

    assert found.host_ports == (HostPort(80, "UDP", "10.0.0.1"),)
    assert found.sidecar_ports == (HostPort(81, "TCP", "0.0.0.0"),)


@pytest.mark.parametrize(
    ("said", "field", "means"),
    [
        ({"preemptionPolicy": "Never"}, "preempts", False),
        ({"preemptionPolicy": "PreemptLowerPriority"}, "preempts", True),
        ({"preemptionPolicy": None}, "preempts", True),
        ({"schedulingGates": [{"name": "quota"}]}, "gated", True),
        ({"schedulingGates": []}, "gated", False),
        ({"schedulingGates": None}, "gated", False),
        ({"schedulerName": "mine"}, "scheduler", "mine"),
        ({"schedulerName": None}, "scheduler", "default-scheduler"),
    ],
)
def test_what_a_pod_tells_the_scheduler(said, field, means):
    """All but those that say never may have others evicted; a gate holds a pod back; Kubernetes' own is the usual."""
    assert getattr(placement(**said), field) == means


def test_cpu_of_containers_and_of_the_overhead():
    """Init containers are not among them."""
    found = placement(
        containers=[{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}}, {}],
        initContainers=[{"resources": {"limits": {"cpu": "4"}}}],
        overhead={"cpu": "50m"},
    )

    assert found.cpus == (ContainerCpu(2000, 1000), ContainerCpu())
    assert found.overhead_cpu == 50
    assert placement().overhead_cpu == 0


@pytest.mark.parametrize("is_read_only", [False, True])
def test_what_a_disk_is_known_by(is_read_only):
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
