"""What pods request and may use, and what else the scheduler reads and assumes of them."""

from operator import attrgetter

import pytest

from rebalancer.cluster.pod import ContainerCpu, HostPort, IscsiDisk, PodAffinityTerm, WeightedPodTerm
from rebalancer.scheduling.simulation import Simulation
from tests import make
from tests.make import selector
from tests.unit.kube.wire.documents import container, read_pod

ZONE = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaces": ["shop"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["hash"],
    "mismatchLabelKeys": ["tenant"],
}
TERM = PodAffinityTerm("zone", selector(app="web"), ("shop",), selector(team="a"), ("hash",), ("tenant",))
REQUIRED, PREFERRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))
PORTS = [{"containerPort": 80}, {"hostPort": 0}, {"hostPort": 80, "protocol": "UDP", "hostIP": "::1"}]
INIT_PORTS = [{"restartPolicy": "Always", "ports": [{"hostPort": 81}]}, {"ports": [{"hostPort": 82}]}]
CPU = [container(limits={"cpu": "2"}, requests={"cpu": "1"}), {}]


def affinity(**parts):
    return {"affinity": parts}


def volume(**source):
    return {"volumes": [{"name": "data", **source}]}


@pytest.mark.parametrize(
    ("spec", "field", "means"),
    [
        # pods to be near, and pods to be away from; a preference without a weight weighs nothing
        (affinity(podAffinity={REQUIRED: [ZONE]}), "placement.affinity", (TERM,)),
        (affinity(podAntiAffinity={REQUIRED: [ZONE]}), "anti_affinity", (TERM,)),
        *(
            (affinity(**{kind: {PREFERRED: [{**weight, "podAffinityTerm": term}]}}), f"placement.{field}", (means,))
            for kind, weight, term, field, means in (
                ("podAffinity", {"weight": 3}, ZONE, "preferred_affinity", WeightedPodTerm(3, TERM)),
                ("podAffinity", {}, ZONE, "preferred_affinity", WeightedPodTerm(0, TERM)),
                *(
                    ("podAntiAffinity", {"weight": 7}, term, "preferred_anti_affinity", WeightedPodTerm(7, means))
                    for term, means in ((ZONE, TERM), ({"topologyKey": "host"}, PodAffinityTerm("host", None)))
                ),
            )
        ),
        # a container's own port takes none of the node's
        ({"containers": [{"ports": PORTS}, {"ports": None}]}, "placement.host_ports", (HostPort(80, "UDP", "::1"),)),
        ({"initContainers": INIT_PORTS}, "placement.host_ports", ()),
        ({"initContainers": INIT_PORTS}, "placement.sidecar_ports", (HostPort(81, "TCP", "0.0.0.0"),)),
        # all but those that say never may have others evicted
        ({"preemptionPolicy": "Never"}, "placement.preempts", False),
        ({"preemptionPolicy": "PreemptLowerPriority"}, "placement.preempts", True),
        ({"preemptionPolicy": None}, "placement.preempts", True),
        # a gate holds a pod back
        ({"schedulingGates": [{"name": "quota"}]}, "placement.gated", True),
        ({"schedulingGates": []}, "placement.gated", False),
        ({"schedulingGates": None}, "placement.gated", False),
        ({"schedulerName": "mine"}, "placement.scheduler", "mine"),
        ({"schedulerName": None}, "placement.scheduler", "default-scheduler"),
        # init containers are not among them
        ({"containers": CPU, "initContainers": CPU}, "placement.cpus", (ContainerCpu(2000, 1000), ContainerCpu())),
        ({"overhead": {"cpu": "50m"}}, "placement.overhead_cpu", 50),
        ({}, "placement.overhead_cpu", 0),
        *(
            (volume(iscsi={"iqn": "iqn", "readOnly": each}), "placement.disks", (IscsiDisk("iqn", each),))
            for each in (False, True)
        ),
        # what every pod has does not count as a disk: a token, a scratch folder; and what is not there
        *(
            (volume(**source), f"placement.{field}", ())
            for source in ({"projected": {"sources": []}}, {"emptyDir": {}}, {"rbd": None})
            for field in ("disks", "removed_volumes")
        ),
    ],
)
def test_what_a_pod_tells_the_scheduler(spec, field, means):
    found = read_pod(spec=spec).spec

    assert (attrgetter(field)(found), found.problem) == (means, "")


@pytest.mark.parametrize("kind", ["gcePersistentDisk", "awsElasticBlockStore", "rbd"])
def test_nobody_knows_where_a_pod_goes_that_has_a_volume_of_a_removed_kind(kind):
    """So it stays, and the reason names the kind."""
    pod = make.pod("web-1", node="n1", placement=read_pod(spec=volume(**{kind: {}})).spec.placement)
    answer = make.cluster([make.node("n1"), make.node("n2")], [pod]).index(Simulation).ask(pod)

    assert answer.unknown == f"the pod has a volume of a kind that Kubernetes has removed ({kind})"


MIB = 1 << 20
BOTH, TWICE, LEAST = {"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"}, {"cpu": "1m", "memory": 1}
GUARANTEED = container(requests=BOTH, limits=BOTH)


@pytest.mark.parametrize(
    ("quality", "containers", "init"),
    [
        # zero is nothing, and so are devices
        *(("BestEffort", [container(requests=each)], []) for each in ({}, {"cpu": "0"}, {"example.com/x": "1"})),
        # both, and equal
        ("Guaranteed", [GUARANTEED], []),
        ("Guaranteed", [container(requests=LEAST, limits=LEAST)], []),
        # one of the two alone, and the least of it
        *(("Burstable", [container(**{each: BOTH})], []) for each in ("requests", "limits")),
        *(("Burstable", [container(**{each: {"cpu": "1m"}})], []) for each in ("requests", "limits")),
        # unequal cpu, and no memory
        ("Burstable", [container(requests=BOTH, limits={**BOTH, "cpu": "2"})], []),
        ("Burstable", [container(requests={"cpu": "1"}, limits={"cpu": "1"})], []),
        # every container counts, by itself
        ("Burstable", [GUARANTEED, container()], []),
        ("Burstable", [GUARANTEED], [container()]),
        ("Burstable", [container(requests=BOTH, limits=TWICE)] * 2, []),
        ("Burstable", [container(requests=BOTH), container(limits=BOTH)], []),
    ],
)
def test_quality_of_service_is_derived_from_cpu_and_memory(quality, containers, init):
    """By the rules of Kubernetes, where the status does not say."""
    spec = {"containers": containers, "initContainers": init}

    assert read_pod(spec=spec).qos == quality
    assert read_pod(spec=spec, status={"qosClass": "Burstable"}).qos == "Burstable"


def test_requests_of_containers_sidecars_pod_and_overhead_come_together():
    """100m beside a sidecar of 50m; an init container of 400m beside that sidecar; 7m on top."""
    init = [{"restartPolicy": "Always", **container(requests={"cpu": "50m"})}, container(requests={"cpu": "400m"})]
    spec = {"containers": [container(requests={"cpu": "100m"})], "initContainers": init, "overhead": {"cpu": "7m"}}

    assert read_pod(spec=spec).spec.requests == {"cpu": 457}
    assert read_pod(spec={**spec, "resources": {"requests": {"cpu": "300m"}}}).spec.requests == {"cpu": 307}
    assert read_pod(spec=spec).spec.requested == {"cpu"}


def placement(container=None, **pod):
    spec = {"containers": [{"image": "web", "resources": container or {}}], **pod}
    return read_pod(spec=spec).spec.placement


def little(cpu, mib, **others):
    return {"cpu": cpu, "memory": mib * MIB, **others}


@pytest.mark.parametrize(
    ("containers", "whole", "assumed", "of_containers"),
    [
        ([{}], {}, little(100, 200), None),
        ([{"cpu": "1"}], {}, little(1000, 200), None),
        ([{"cpu": "1"}, {}], {}, little(1100, 400), None),
        # what the whole pod names stands for them; then what one container names is not assumed of another
        ([{}], {"cpu": "2"}, little(2000, 200), little(100, 200)),
        ([{"memory": "1Gi"}, {}], {"cpu": "2"}, little(2000, 1024), little(200, 1224)),
        # something else of the whole pod says nothing of cpu and memory
        ([{}, {}], {"hugepages-2Mi": "4Mi"}, little(200, 400, **{"hugepages-2Mi": 4 * MIB}), little(200, 400)),
    ],
)
def test_a_tenth_of_a_core_and_200_mib_are_assumed_of_what_is_not_named(containers, whole, assumed, of_containers):
    """The figures of the containers alone are kept beside, where they differ."""
    spec = {"containers": [container(requests=each) for each in containers], "resources": {"requests": whole}}

    found = read_pod(spec=spec).spec.placement

    assert (found.assumed, found.assumed_of_containers) == (assumed, of_containers)


def test_requests_without_sidecars_and_without_those_of_the_whole_pod_are_kept_beside():
    """Trimaran takes a sidecar for an init container that ends; kept only where there is one or the other."""
    main, sidecar = {"requests": {"cpu": "1"}}, {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    start = {"resources": {"requests": {"cpu": "1200m", "memory": "1Gi"}}}
    whole = {"requests": {"cpu": "4"}}

    assert placement(main, initContainers=[start]).requests_of_containers is None
    assert placement(main, initContainers=[sidecar]).requests_of_containers == {"cpu": 1000}
    assert placement(main, resources=whole, overhead={"cpu": "50m"}).requests_of_containers == {"cpu": 1050}
    found = placement(main, initContainers=[sidecar, start], overhead={"cpu": "50m"})
    assert found.requests_of_containers == {"cpu": 1250, "memory": 1 << 30}


def test_what_older_schedulers_assume_of_a_running_pod_leaves_sidecars_out():
    """The larger of all containers, and of sidecars together or beside an init container; kept only with sidecars."""
    sidecar = {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    start = {"resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}}

    assert placement(initContainers=[start]).assumed_without_sidecars is None
    assert placement({"requests": {"cpu": "1"}}, initContainers=[sidecar]).assumed_without_sidecars == {
        "cpu": 1000,
        "memory": 200 * MIB,
    }
    found = placement({}, initContainers=[sidecar, start], overhead={"cpu": "50m"})
    assert found.assumed_without_sidecars == {"cpu": 850, "memory": 1 << 30}
    assert placement({}, initContainers=[start, sidecar]).assumed_without_sidecars == {"cpu": 500, "memory": 1 << 30}


def test_images_and_ports_are_kept_by_what_has_them():
    """Which of them count, the version of the scheduler says."""
    port = {"ports": [{"hostPort": 80}]}
    found = placement(
        initContainers=[{"image": "tool:2", **port}, {"image": "side", "restartPolicy": "Always", **port}],
        volumes=[{"name": "v", "image": {"reference": "model:1"}}],
    )

    assert (found.images, found.init_images) == (("web:latest",), ("tool:2", "side:latest"))
    assert found.volume_images == ("model:1",)
    assert ([each.port for each in found.host_ports], [each.port for each in found.sidecar_ports]) == ([], [80])
