"""What the scheduler reads of a pod beside its requests."""

import pytest

from rebalancer.cluster.pod import ContainerCpu, HostPort, PodAffinityTerm, WeightedPodTerm
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
    """Required and preferred, each where the scheduler looks for it."""
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
    """With all that narrows it down."""
    pod = read_pod(spec={"affinity": {"podAntiAffinity": {REQUIRED: [ZONE]}}})

    assert pod.spec.anti_affinity == (TERM,)


@pytest.mark.parametrize("affinity", [{}, {"podAffinity": {REQUIRED: None, PREFERRED: None}, "podAntiAffinity": None}])
def test_no_affinity(affinity):
    """Null is absent."""
    found = placement(affinity=affinity)

    assert (found.affinity, found.preferred_affinity, found.preferred_anti_affinity) == ((), (), ())


def test_a_preference_without_a_weight_weighs_nothing():
    """Of pods and of nodes."""
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


@pytest.mark.parametrize(("policy", "preempts"), [("Never", False), ("PreemptLowerPriority", True), (None, True)])
def test_who_may_have_others_evicted(policy, preempts):
    """All but those that say never."""
    assert placement(preemptionPolicy=policy).preempts is preempts


@pytest.mark.parametrize(("gates", "gated"), [([{"name": "quota"}], True), ([], False), (None, False)])
def test_a_gate_holds_a_pod_back(gates, gated):
    """Until somebody removes it."""
    assert placement(schedulingGates=gates).gated is gated


@pytest.mark.parametrize(("said", "scheduler"), [("mine", "mine"), (None, "default-scheduler")])
def test_the_scheduler_that_a_pod_names(said, scheduler):
    """Kubernetes' own where it names none."""
    assert placement(schedulerName=said).scheduler == scheduler


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
