"""What the simulator answers, and what it says it does not know."""

import pytest

from rebalancer.cluster.pod import Placement, Pod, PodAffinityTerm
from rebalancer.cluster.scheduler_inputs import NOTHING_READ, Claim, CsiNode, SchedulerInputs, StorageClass, Volume
from rebalancer.cluster.selectors import EVERYTHING, NodeSelectorTerm, Requirement
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import Configuration, ConfigurationError, read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests import make
from tests.unit.scheduling.simulator.configured import HEAD, configured

ZONE = "topology.kubernetes.io/zone"
READ = SchedulerInputs(
    services={},
    replica_sets={},
    replication_controllers={},
    stateful_sets={},
    claims={},
    volumes={},
    storage_classes={},
    csi_nodes={},
    csi_drivers={},
    storage_capacities=(),
    attachments=(),
)


def ask(
    nodes, pods, pod: Pod, read: SchedulerInputs = READ, configuration: Configuration | None = None, **fields
) -> Answer:
    state = State(make.snapshot(nodes, pods, **{"namespaces": {}, **fields}), read)
    return Simulator(state, lambda state: profiles(state, configuration)).ask(pod)


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

    assert not answer.known
    assert why in answer.unknown


@pytest.mark.parametrize(("priority", "feasible"), [(5, 2), (6, 1), (7, 1)])
def test_a_nominated_pod_takes_its_node_from_pods_of_no_higher_priority(priority: int, feasible: int) -> None:
    """It counts there in the filters, and nowhere in the scores."""
    waiting = make.pod("w", node="", nominated_node="a", phase="Pending", priority=priority, cpu="4")
    answer = ask([make.node("a", cpu="4"), make.node("b", cpu="4")], [waiting], make.pod("p", priority=6))

    assert (answer.known, answer.feasible) == (True, feasible)
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

    assert [each.known for each in answers] == [known] * 3
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
    return SchedulerInputs(
        **{name: getattr(READ, name) for name in READ.__struct_fields__}
        | {
            "claims": {("default", "data"): made},
            "volumes": {"v": Volume(name="v", **volume)},
            "storage_classes": {"slow": StorageClass(name="slow", provisioner="x", waits=True)},
            "csi_nodes": {"a": CsiNode(name="a", limits={"x": 0})},
        }
    )


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
    ):
        assert ask([EAST, WEST], [], USER, read).nodes == nodes


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"bound": False}, "pod has unbound immediate PersistentVolumeClaims"),
        ({"terminating": True}, 'persistentvolumeclaim "data" is being deleted'),
    ],
)
def test_a_claim_may_keep_a_pod_waiting(fields: dict, why: str) -> None:
    """In the scheduler's words."""
    assert ask([EAST], [], USER, claim(**fields)).reason == f"0/1 nodes are available: {why}."


def test_a_claim_for_one_pod_is_taken_by_one() -> None:
    """On no node may another have it."""
    read = claim(access_modes=frozenset(("ReadWriteOncePod",)))
    resident = make.pod("r", node="b", claims=("data",))

    assert ask([EAST, WEST], [], USER, read).nodes
    assert "ReadWriteOncePod" in ask([EAST, WEST], [resident], USER, read).reason


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
    state = State(make.snapshot(nodes, [], namespaces={}), READ, minor)
    answer = Simulator(state, profiles).ask(pod)

    assert "Insufficient example.com/gpu" in answer.reason
    assert answer.unknown.startswith(unknown)
    assert bool(answer.unknown) is bool(unknown)
