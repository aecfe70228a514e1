"""What the simulator answers, as worked sums, and what it says it does not know."""

import msgspec
import numpy as np
import pytest

from rebalancer.cluster.node import NodeImage
from rebalancer.cluster.pod import Placement, Pod, PodAffinityTerm, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import NOTHING_READ, Claim, CsiNode, SchedulerInputs, StorageClass, Volume
from rebalancer.cluster.selectors import EVERYTHING, NodeSelectorTerm, Requirement
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import ConfigurationError, read_configuration
from rebalancer.scheduling.simulator.plugin import Refusals
from rebalancer.scheduling.simulator.plugins.resources import Column, FitArgs, Scorer
from tests import make
from tests.unit.scheduling.simulator.scheduler import HEAD, READ, configured, simulator

ZONE = "topology.kubernetes.io/zone"
BIG = Placement(images=("big:1",))


def ask(nodes, pods, pod: Pod, read: SchedulerInputs = READ, **fields) -> Answer:
    return simulator(nodes, pods, read=read, **fields).ask(pod)


def test_reasons_are_worded_and_sorted_as_the_schedulers() -> None:
    """Every node counts once for each of its reasons, those of the first plugin that refuses it."""
    nodes = [
        make.node("a", unschedulable=True, taints=["x:NoSchedule"]),
        make.node("b", taints=["x:NoSchedule"]),
        make.node("c", cpu="1", memory="1Gi"),
        make.node("d", pods=0),
    ]

    answer = ask(nodes, [], make.pod("p", cpu="2", memory="2Gi"))

    assert answer.nodes == ()
    assert answer.reason == (
        "0/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods,"
        " 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"placement": Placement(scheduler="other")}, "scheduler 'other'"),
        ({"placement": Placement(gated=True)}, "gate"),
        ({"resource_claims": True}, "devices"),
        ({"problem": "cpu: no quantity"}, "malformed"),
    ],
)
def test_what_is_not_simulated_is_not_known(fields: dict, why: str) -> None:
    """Each with its reason."""
    answer = ask([make.node("a")], [], make.pod("p", **fields))

    assert why in answer.unknown


@pytest.mark.parametrize(
    ("offered", "score"),
    [({}, 50 + (50 + 100 - 100) // 2), ({"ephemeral-storage": "10Gi"}, 50 + (50 + 100 - 75) // 2)],
)
def test_a_resource_that_a_node_does_not_offer_does_not_make_it_uneven(offered: dict, score: int) -> None:
    """The pod takes 2 of 4 free cores.  Where the node has a disk, half of it is taken, so the node becomes even."""
    args = {"resources": [{"name": "cpu"}, {"name": "ephemeral-storage"}]}
    configuration = configured({"pluginConfig": [{"name": "NodeResourcesBalancedAllocation", "args": args}]})
    there = [make.pod("a", node="n1", cpu=None, requests={"ephemeral-storage": "5Gi"})] if offered else []

    answer = ask([make.node("n1", extra=offered)], there, make.pod("p", cpu="2"), configuration=configuration)

    assert answer.scores("n1")["NodeResourcesBalancedAllocation"] == score


@pytest.mark.parametrize(("priority", "feasible"), [(5, 2), (6, 1), (7, 1)])
def test_a_nominated_pod_takes_its_node_from_pods_of_no_higher_priority(priority: int, feasible: int) -> None:
    """It counts there in the filters, and nowhere in the scores."""
    waiting = make.pod("w", node="", nominated_node="a", phase="Pending", priority=priority, cpu="4")
    answer = ask([make.node("a", cpu="4"), make.node("b", cpu="4")], [waiting], make.pod("p", priority=6))

    assert (answer.unknown, len(answer.feasible_nodes())) == ("", feasible)
    assert answer.nodes == ("a", "b")[-feasible:]


def test_what_a_nominated_pod_takes_is_told_beside_what_was_lacking_before() -> None:
    """`b` is full for the pod anyway, `a` because of the pod that is nominated for it."""
    waiting = make.pod("w", node="", nominated_node="a", phase="Pending", priority=7, cpu="4")
    nodes = [make.node("a", cpu="4"), make.node("b", cpu="1")]

    assert ask(nodes, [waiting], make.pod("p", cpu="2")).reason == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_kind_that_was_not_read_makes_unknown_what_hangs_on_it() -> None:
    """Default spreading goes by Services; volumes by claims."""
    assert "Services" in ask([make.node("a")], [], make.pod("p"), NOTHING_READ).unknown
    assert "Claims" in ask([make.node("a")], [], make.pod("p", claims=("data",)), NOTHING_READ).unknown


def test_a_namespace_selector_needs_namespaces() -> None:
    """Also one of a running pod."""
    term = PodAffinityTerm(ZONE, make.selector(app="x"), namespace_selector=make.selector(team="one"))
    resident = make.pod("r", node="a", anti_affinity=(term,))

    assert "namespaces" in ask([make.node("a")], [resident], make.pod("p"), namespaces=None).unknown


def asking(**labels: str) -> tuple[PodAffinityTerm, ...]:
    return (PodAffinityTerm(ZONE, make.selector(**labels), namespace_selector=make.selector(team="one")),)


def test_a_namespace_selector_that_came_to_a_copy_leaves_the_answers_of_the_other_known() -> None:
    """What one world does not know, another need not ask."""
    here = simulator([make.node("a")], namespaces=None)
    there = here.copy()
    there.exchange("a", None, make.pod("r", anti_affinity=asking(app="x")))

    assert [bool(each.ask(make.pod("p")).unknown) for each in (here, there)] == [False, True]


@pytest.mark.parametrize(("app", "known"), [("x", False), ("y", True)])
def test_labels_of_a_namespace_that_cannot_be_read_are_unknown(app: str, known: bool) -> None:
    """They count where a term of the pod goes by them, or one of a running pod; not where the pods differ anyway."""
    lost, other = {"namespace": "lost"}, {"namespaces": {"default": {}}}
    there = make.pod("r", node="a", labels={"app": app}, **lost)
    selecting = make.pod("s", node="a", anti_affinity=asking(app="x"))

    answers = (
        ask([make.node("a")], [there], make.pod("p", anti_affinity=asking(app="x")), **other),
        ask([make.node("a")], [selecting], make.pod("p", labels={"app": app}, **lost), **other),
        ask([make.node("a")], [], make.pod("p", labels={"app": app}, anti_affinity=asking(app="x"), **lost), **other),
    )

    assert [not each.unknown for each in answers] == [known] * 3
    assert known or all("labels of lost" in each.unknown for each in answers)


def test_a_selector_of_all_namespaces_needs_no_labels() -> None:
    """An empty one takes every namespace; one that names the namespace takes it as well."""
    there = make.pod("r", node="a", namespace="lost", labels={"app": "x"})
    everywhere = PodAffinityTerm(ZONE, make.selector(app="x"), namespace_selector=EVERYTHING)
    by_name = PodAffinityTerm(ZONE, make.selector(app="x"), ("lost",), make.selector(team="one"))

    for term in (everywhere, by_name):
        answer = ask([EAST, WEST], [there], make.pod("p", anti_affinity=(term,)), namespaces={"default": {}})
        assert answer.nodes == ("b",)


def claim(**fields) -> SchedulerInputs:
    volume = {key: fields.pop(key) for key in ("node_terms", "labels", "driver", "handle") if key in fields}
    made = Claim(namespace="default", name="data", **{"volume": "v", "bound": True, **fields})
    return msgspec.structs.replace(
        READ,
        claims={("default", "data"): made},
        volumes={"v": Volume(name="v", **volume)},
        storage_classes={"slow": StorageClass(name="slow", provisioner="x", waits=True)},
        csi_nodes={"a": CsiNode(name="a", limits={"x": 0})},
    )


TAKEN = "PersistentVolumeClaim with ReadWriteOncePod"
ONE_POD = frozenset(("ReadWriteOncePod",))
IN_EAST = NodeSelectorTerm((Requirement(ZONE, "In", ("east",)),))
EAST, WEST = make.node("a", labels={ZONE: "east"}), make.node("b", labels={ZONE: "west"})
USER = make.pod("p", owners=None, claims=("data",))


def test_volumes_say_where_a_pod_may_go() -> None:
    """By node affinity, by zone, by how many a node takes; a claim that waits goes anywhere."""
    for read, nodes in (
        (claim(node_terms=(IN_EAST,)), ("a",)),
        (claim(labels={ZONE: "west__south"}), ("b",)),
        (claim(driver="x", handle="1"), ("b",)),
        (claim(volume="", bound=False, storage_class="slow"), ("b",)),
        (claim(access_modes=ONE_POD), ("a", "b")),
    ):
        assert ask([EAST, WEST], [], USER, read).nodes == nodes


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"bound": False}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"terminating": True}, 'persistentvolumeclaim "data" is being deleted'),
        ({"node_terms": (IN_EAST,)}, "1 node(s) didn't match PersistentVolume's node affinity"),
        ({"access_modes": ONE_POD}, f"1 node(s) unavailable due to {TAKEN} access mode already in-use by another pod"),
    ],
)
def test_a_claim_may_keep_a_pod_waiting(fields: dict, why: str) -> None:
    """In the scheduler's words; another pod has the claim, on whatever node."""
    resident = make.pod("r", node="b", claims=("data",))

    assert ask([WEST], [resident], USER, claim(**fields)).reason == f"0/1 nodes are available: {why}."


def test_nodes_that_a_pod_does_not_name_are_told_too() -> None:
    """It names `a`, which is cordoned."""
    named = (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("a",)),)),)
    answer = ask([make.node("a", unschedulable=True), make.node("b")], [], make.pod("p", node_terms=named))

    assert answer.reason == (
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable."
    )


def test_a_profile_may_change_weights_and_turn_plugins_off() -> None:
    """What a point says goes before `multiPoint`."""
    plugins = {
        "multiPoint": {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "TaintToleration", "weight": 9}]},
        "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 4}], "disabled": [{"name": "NodeAffinity"}]},
    }
    configuration = configured({"plugins": plugins})

    found = ask([make.node("a"), make.node("b")], [], make.pod("p", cpu=None), configuration=configuration).scores("a")

    assert dict(found) == {"TaintToleration": 900, "NodeResourcesFit": 4 * 97}


def test_a_plugin_or_an_extender_that_nothing_is_known_of() -> None:
    """Makes all answers of the profile unknown."""
    strange = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "MyOwn"}]}}}]}
    for more, why in ((strange, "MyOwn"), ({"extenders": [{"filterVerb": "filter"}]}, "extender")):
        assert why in ask([EAST], [], make.pod("p"), configuration=read_configuration({**HEAD, **more})).unknown


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"kind": "Pod"}, "found Pod"),
        ({**HEAD, "profiles": 5}, "profiles"),
        ({**HEAD, "profiles": [{}, {}]}, "schedulerName"),
        ([], "object"),
    ],
)
def test_a_configuration_that_cannot_be_used(document: object, why: str) -> None:
    """Says why."""
    with pytest.raises(ConfigurationError, match=why):
        read_configuration(document)


@pytest.mark.parametrize(("minor", "unknown"), [(35, ""), (36, "devices may be claimed for the example.com/gpu")])
def test_devices_may_stand_in_for_an_extended_resource_that_no_node_has(minor: int, unknown: str) -> None:
    """Since 1.36; the reason is that of a cluster without such devices."""
    nodes = [make.node("a", kubelet_version=f"v1.{minor}.0")]
    pod = make.pod("p", requests={"example.com/gpu": 1})
    answer = ask(nodes, [], pod, minor=minor)

    assert "Insufficient example.com/gpu" in answer.reason
    assert answer.unknown.startswith(unknown)
    assert bool(answer.unknown) is bool(unknown)


def test_strategies_score_what_is_requested() -> None:
    """MostAllocated weighs shares; a falling shape is cut off towards zero."""

    def column(asked: int, offered: int, weight: int) -> Column:
        return Column(np.array([asked]), np.array([offered]), weight)

    def scorer(**strategy: object) -> Scorer:
        return msgspec.convert({"scoringStrategy": strategy}, FitArgs).scorer()

    assert scorer(type="MostAllocated")([column(1000, 4000, 3), column(8, 16, 1)]) == [(25 * 3 + 50) // 4]
    shape = [{"utilization": 0, "score": 10}, {"utilization": 70, "score": 0}]
    falling = scorer(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})
    assert falling([column(25, 100, 1)]) == [100 - 100 * 25 // 70]


@pytest.mark.parametrize(("pods", "expected"), [(21, 80), (17, 84), (25, 77)])
def test_nodes_with_few_pods(pods: int, expected: int) -> None:
    """Of 110 pods a node."""
    configuration = configured({"plugins": {"score": {"enabled": [{"name": "PodCapacityOfNode"}]}}})
    residents = [make.pod(f"p{number}", cpu=None) for number in range(pods)]

    found = ask([make.node("n1"), make.node("n2")], residents, make.pod("a"), configuration=configuration)

    assert found.scores("n1")["PodCapacityOfNode"] == expected


def test_amounts_beyond_64_bits_stop_nobody() -> None:
    """A pod may ask for 100Ei, which is more than 2^63 bytes: n1 is full then, and n2 takes others."""
    nodes = [make.node("n1", memory="100Ei"), make.node("n2")]
    hogs = [make.pod(f"hog{number}", "n1", memory="100Ei") for number in range(3)]
    web = make.pod("web", "n2", memory="1Gi")
    simulation = make.cluster(nodes, [*hogs, web]).index(Simulation)

    assert simulation.ask(web).nodes == ("n2",)
    assert "Insufficient memory" in simulation.ask(hogs[0]).reason


def test_the_first_reason_for_which_a_node_is_refused_is_told() -> None:
    """Of three nodes one is refused for both reasons, one for the second, and one for none."""
    found = Refusals.joined([(np.array([True, False, False]), ("one",)), (np.array([True, True, False]), ("two",))])

    assert found is not None
    assert found.gone.tolist() == [True, True, False]
    assert [found.why(index) for index in (0, 1)] == [("one",), ("two",)]


def test_sums_of_soft_spread_are_rounded() -> None:
    """Three, two and one pods: 4.83, 3.22 and 1.61 make 5, 3 and 2, and these 40, 80 and 100, with a weight of 2."""
    zones = {"n1": 3, "n2": 2, "n3": 1}
    nodes = [make.node(name, labels={"zone": name}) for name in zones]
    there = [
        make.pod(f"{at}-{each}", at, labels={"app": "web"}) for at, count in zones.items() for each in range(count)
    ]
    spread = (SpreadConstraint(1, "zone", "ScheduleAnyway", make.selector(app="web")),)
    new = make.pod("new", "gone", labels={"app": "web"}, spread=spread)

    answer = make.cluster(nodes, [*there, new]).index(Simulation).ask(new)

    assert [answer.scores(name)["PodTopologySpread"] for name in zones] == [80, 160, 200]


def test_a_negative_number_of_domains_counts_as_one() -> None:
    """The API server refuses `minDomains: -1`, but a file may have it, and a label that no node carries."""
    spread = (SpreadConstraint(1, "rack", "DoNotSchedule", make.selector(app="web"), min_domains=-1),)

    assert "(missing required label)" in ask([make.node("n1")], [], make.pod("new", "", spread=spread)).reason


def test_an_image_of_any_size_can_be_scored() -> None:
    """A file may have more than 64 bits, and a kubelet the most of them, which are too many once they are rounded."""
    for size in (1 << 80, (1 << 63) - 1):
        answer = ask([make.node("n1", images=(NodeImage(("big:1",), size),))], [], make.pod("p", placement=BIG))
        assert answer.scores("n1")["ImageLocality"] == 100
