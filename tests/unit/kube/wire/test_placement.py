"""What the scheduler reads of a pod beside its requests."""

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
        # what every pod has is no disk: a token, a scratch folder; and what is not there
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


def test_a_preference_of_nodes_without_a_weight_weighs_nothing():
    found = read_pod(spec=affinity(nodeAffinity={PREFERRED: [{"preference": {}}]})).spec

    assert [each.weight for each in found.preferred] == [0]


@pytest.mark.parametrize("kind", ["gcePersistentDisk", "awsElasticBlockStore", "rbd"])
def test_nobody_knows_where_a_pod_goes_that_has_a_volume_of_a_removed_kind(kind):
    """So it stays, and the reason names the kind."""
    pod = make.pod("web-1", node="n1", placement=read_pod(spec=volume(**{kind: {}})).spec.placement)
    answer = make.cluster([make.node("n1"), make.node("n2")], [pod]).index(Simulation).ask(pod)

    assert answer.unknown == f"the pod has a volume of a kind that Kubernetes has removed ({kind})"
