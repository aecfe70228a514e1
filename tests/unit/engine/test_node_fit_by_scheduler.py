"""`nodeFit: scheduler`: a pod goes only if the scheduler places its replacement for certain."""

from typing import Any

import pytest
from pydantic import ValidationError

from rebalancer.cluster.pod import HostPort, Placement, PodAffinityTerm, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import Claim, CsiNode, SchedulerInputs, StorageClass, Volume
from rebalancer.cluster.selectors import EVERYTHING
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.words import text
from rebalancer.scheduling.certain_room import Competitors, ReplacementKind
from tests.make import cluster, decide, evicted, node, owner, pod, refused, selector, why
from tests.measured import PACKS
from tests.unit.engine.stand_ins import Greedy, Polite, Scripted

FIT = {"nodeFit": "scheduler"}
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PORT = Placement(host_ports=(HostPort(80),))
WEB = {"app": "web"}
APART = (PodAffinityTerm(ZONE, selector(app="web")),)


def test_a_replacement_that_fits_nowhere_keeps_its_pod() -> None:
    """The descheduler's rule would let it go: it does not know that the port of n2 is taken."""
    nodes = [node("n1"), node("n2")]
    pods = [pod("a", placement=PORT), pod("b", node="n2", placement=PORT, owners=None)]

    assert "a" in evicted(decide(cluster(nodes, pods), Polite(), evictor={"nodeFit": True}))
    ledger = decide(cluster(nodes, pods), Polite(), evictor=FIT)
    assert refused(ledger)["a"] == "NodeFit"
    assert why(ledger)["a"].startswith(
        "the scheduler would find no node for its replacement: "
        "0/2 nodes are available: 2 node(s) didn't have free ports"
    )


def test_it_is_not_near_its_old_pod_for_ever() -> None:
    """It has to be near a pod like itself.  Once the old one is gone, the only other one is on a cordoned node."""
    near = Placement(affinity=(PodAffinityTerm(HOST, selector(app="web")),))
    nodes = [node("n1"), node("n2", unschedulable=True)]
    web, other = pod("a", labels=WEB, placement=near), pod("b", node="n2", labels=WEB, owners=None)

    assert evicted(decide(cluster(nodes, [web]), Polite(), evictor=FIT)) == ["a"]
    ledger = decide(cluster(nodes, [web, other]), Polite(), evictor=FIT)
    assert "0/2 nodes are available" in why(ledger)["a"]


def test_what_is_not_known_to_fit_stays() -> None:
    """No controller looks after it; or ReplicaSets were not read, and spreading by default goes by them."""
    nodes = [node("n1"), node("n2")]
    lone = decide(
        cluster(nodes, [pod("a", owners=[owner("x", "Thing")], placement=Placement(gated=True))]), Polite(), evictor=FIT
    )
    unread = SchedulerInputs(services={}, replication_controllers={}, stateful_sets={})
    spread = decide(cluster(nodes, [pod("a")], scheduler_inputs=unread), Polite(), evictor=FIT)

    assert why(lone) == {"a": "it is not known whether its replacement fits: a scheduling gate holds the pod back"}
    assert why(spread)["a"].endswith("default spreading goes by ReplicaSets, which were not read")


@pytest.mark.parametrize("strategy", [Greedy(), Polite()], ids=["a strategy that does not ask", "one that does"])
def test_one_free_place_is_counted_once(strategy: Any) -> None:
    """n2 has room for one more pod and all others are full.  The room of a pod that went does not count either."""
    nodes = [node("n1", cpu="1"), node("n2", cpu="600m"), node("n3", cpu="600m")]
    pods = [pod(name, cpu="500m") for name in "ab"] + [pod("c", node="n2", cpu="500m")]
    ledger = decide(cluster(nodes, pods), strategy, evictor=FIT)

    assert evicted(ledger) == ["a"]
    assert why(ledger)["b"] == "1 nodes have room for its replacement, but 1 others may take that first"


def ending(kind: str) -> Any:
    return pod("ends", cpu="500m", terminating=True, owners=[owner("x", kind)])


@pytest.mark.parametrize(
    ("room", "other", "went"),
    [
        ("500m", pod("waits", node="", cpu="500m", owners=None), []),
        ("1", ending("ReplicaSet"), ["a"]),
        ("1", ending("StatefulSet"), []),
        ("1", ending("Job"), []),
    ],
)
def test_what_comes_anyway_may_take_the_room(room: str, other: Any, went: list[str]) -> None:
    """For a pod that ends it comes later, or was made at once: then it is a pod of the cluster by now."""
    nodes = [node("n1", cpu=room), node("n2", cpu="500m")]

    assert evicted(decide(cluster(nodes, [pod("a", cpu="500m"), other]), Polite(), evictor=FIT)) == went


@pytest.mark.parametrize("asks", [{"cpu": "500m"}, {"placement": PORT}], ids=["a larger request", "a port"])
def test_pods_that_ask_for_different_things_are_counted_apart(asks: dict[str, Any]) -> None:
    """Of two pods that wait for a node, only the second keeps a replacement that asks for the same from n2."""
    nodes = [node("n1", cpu="500m"), node("n2", cpu="700m")]
    small, other = (pod(n, node="", owners=None, **{"cpu": "100m", **more}) for n, more in (("a", {}), ("b", asks)))
    pods = [pod("fills", cpu="400m" if "placement" in asks else None, owners=None), pod("z", **{"cpu": "100m", **asks})]

    assert evicted(decide(cluster(nodes, [small, *pods]), Polite(), evictor=FIT)) == ["z"]
    assert evicted(decide(cluster(nodes, [small, other, *pods]), Polite(), evictor=FIT)) == []


def test_a_later_pod_does_not_take_the_room_of_an_earlier_one() -> None:
    """Only n2 takes a, which wants ssd; b fits on n3 as well, but may come first and take n2."""
    ssd = {"disk": "ssd"}
    nodes = [node("n1", cpu="1"), node("n2", cpu="500m", labels=ssd), node("n3", cpu="500m")]
    pods = [pod("a", cpu="500m", node_selector=ssd, owners="fast"), pod("b", cpu="500m", age=60)]
    ledger = decide(cluster(nodes, pods), Polite(), evictor=FIT)

    assert evicted(ledger) == ["a"]
    assert why(ledger) == {"b": "its replacement might take the room of that of default/a"}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"spread": (SpreadConstraint(1, ZONE, "DoNotSchedule", selector(app="web")),)}, id="hard spread"),
        pytest.param({"spread": (SpreadConstraint(1, ZONE, "DoNotSchedule", EVERYTHING),)}, id="spread with all"),
        pytest.param({"anti_affinity": APART}, id="zones apart"),
        pytest.param(
            {"anti_affinity": APART, "spread": (SpreadConstraint(1, HOST, "DoNotSchedule", selector(app="db")),)},
            id="zones apart, and spread with others",
        ),
        pytest.param({"placement": Placement(affinity=(PodAffinityTerm(ZONE, selector(app="web")),))}, id="together"),
    ],
)
def test_of_pods_tied_by_a_rule_over_zones_one_goes(rule: dict[str, Any]) -> None:
    """Where one lands decides where the other may land; the next cycle sees where it did."""
    nodes = [node(f"n{number}", labels={ZONE: f"z{number}"}) for number in range(4)]
    apart = rule if "placement" not in rule else {}
    pods = [pod("a", node="n0", labels=WEB, **rule), pod("b", node="n1" if apart else "n0", labels=WEB, **rule)]
    ledger = decide(cluster(nodes, pods), Polite(), evictor=FIT)

    assert evicted(ledger) == ["a"]
    assert why(ledger) == {
        "b": "a rule between pods ties its replacement to that of default/a: which comes first is not known"
    }


def test_hard_spreading_by_default_ties_pods_too() -> None:
    """Pods without constraints are spread by those of the profile: those of its owner count, and no others.

    One that waits for a scheduler that nobody knows is like c in all else, and may be spread with it.
    """
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    configuration = {**PACKS, "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}]}
    nodes = [node(f"n{number}", labels={ZONE: f"z{number}"}) for number in range(2)]
    waits = pod("waits", node="", labels={"app": "x"}, owners=None, placement=Placement(scheduler="unheard-of"))
    pods = [pod("a", node="n0", labels=WEB), pod("b", node="n1", labels=WEB), pod("c", owners="x", labels={"app": "x"})]

    def decided(*pods: Any) -> Any:
        return decide(cluster(nodes, pods, scheduler_configuration=configuration), Polite(), evictor=FIT)

    ledger, beside = decided(*pods), decided(*pods, waits)
    assert evicted(ledger) == ["a", "c"]
    assert why(ledger)["b"].startswith("a rule between pods ties its replacement to that of default/a")
    assert (evicted(beside), refused(beside)["c"]) == (["a"], "NodeFit")


@pytest.mark.parametrize("kind", ["claims", "own_claims"])
def test_a_pod_that_waits_may_take_the_last_place_for_a_volume(kind: str) -> None:
    """n2 takes one volume, of a claim or of a generic ephemeral volume; n1 is cordoned."""
    names = ("default", "c"), ("default", "b-data")
    read = SchedulerInputs(
        claims={
            names[0]: Claim(namespace="default", name="c", volume="v", bound=True),
            names[1]: Claim(namespace="default", name="b-data", storage_class="waits"),
        },
        volumes={"v": Volume(name="v", driver="d", handle="v")},
        storage_classes={"waits": StorageClass(name="waits", provisioner="d", waits=True)},
        csi_nodes={"n2": CsiNode(name="n2", limits={"d": 1})},
        csi_drivers={},
        attachments=(),
    )
    a = pod("a", claims=("c",), owners=[owner("x", "StatefulSet")])
    waits = pod("b", node="", owners=None, **{kind: ("b-data",)})

    def told(*pods: Any) -> str:
        nodes = [node("n1", unschedulable=True), node("n2")]
        return why(decide(cluster(nodes, pods, scheduler_inputs=read), Polite(), evictor=FIT)).get("a", "goes")

    assert told(a) == "goes"
    assert told(a, waits) == "1 nodes have room for its replacement, but 1 others may take that first"


def test_which_pod_another_is_tied_to_does_not_hang_on_the_order_of_a_file() -> None:
    """Two pods that wait for a node are tied to a; the older one is named."""
    near = {"labels": WEB, "placement": Placement(affinity=(PodAffinityTerm(ZONE, selector(app="web")),))}
    nodes = [node(f"n{number}", labels={ZONE: f"z{number}"}) for number in range(2)]
    pods = [pod("a", **near), pod("old", node="", age=90, **near), pod("new", node="", age=60, **near)]
    told = [why(decide(cluster(nodes, each), Polite(), evictor=FIT))["a"] for each in (pods, pods[::-1])]

    assert (
        told == ["a rule between pods ties its replacement to that of default/old: which comes first is not known"] * 2
    )


def test_a_pod_that_was_only_tried_takes_no_room() -> None:
    """What a strategy supposes is taken back: the one free place is there for the other pod."""
    nodes = [node("n1", cpu="1"), node("n2", cpu="500m")]
    pods = [pod(name, cpu="500m") for name in "ab"]

    def script(_: Any, evict: Any) -> None:
        assert evict.first_refusal(pods)[0] is pods[1]
        evict(pods[1], "after all")

    assert evicted(decide(cluster(nodes, pods), Scripted(script), evictor=FIT)) == ["b"]


def test_what_stands_in_for_templates_is_told() -> None:
    on = cluster([node("n1"), node("n2")], [pod("a"), pod("b")])

    (warning,) = decide(on, Polite(), evictor=FIT).warnings
    assert text(warning.cause).startswith("neither controllers nor Services were read")
    assert not decide(on, Polite(), evictor={"nodeFit": True}).warnings


def test_counting_is_by_node() -> None:
    """The example of the module: five others of a core each, and nodes with 0, 1 and 2 cores left."""

    def leaves_room(size: int, each: str, blocking: int = 0, **spare: list[int]) -> bool:
        return Competitors({ReplacementKind(pod("one", cpu=each), {}, known=True): size}).leaves_room(spare, blocking)

    assert leaves_room(5, "1", cpu=[0, 1000, 2000])
    assert not leaves_room(5, "1", blocking=1, cpu=[0, 1000, 2000])
    assert not leaves_room(6, "1", cpu=[0, 1000, 2000])
    assert leaves_room(6, "1m", cpu=[6, 0])
    assert not leaves_room(6, "1m", cpu=[6, 0], pods=[2, 9])


def test_a_node_selector_does_not_go_with_it() -> None:
    """The scheduler chooses among all nodes."""
    with pytest.raises(ValidationError, match="leave nodeSelector out"):
        DefaultEvictorArgs.model_validate({**FIT, "nodeSelector": "pool=x"})
