"""A pod goes only if the scheduler, which scores nodes by requests, would likely put it where it does no harm."""

import pytest

from rebalancer.cluster.pod import HostPort, Placement, PodAffinityTerm
from rebalancer.eviction.verdict import Unknown
from rebalancer.report.words import notice_text
from rebalancer.scheduling.worlds import Worlds
from tests import make
from tests.make import because, decide, evicted, lands, pdb, refused, why
from tests.measured import cluster, low, low_anywhere, node, points
from tests.measured import pod as small_pod
from tests.unit.engine.stand_ins import AnsweringSink

NODES = (node("n1"), node("n2"), node("n3"))


def pod(name, on="n1", cpu="1", **fields):
    """A pod of a tenth of a node, with an owner of its own unless given."""
    return small_pod(name, on=on, cpu=cpu, **fields)


def test_a_pod_that_would_come_back_stays():
    """n2 is idle and has room, but of its requests more are taken than of what n1 has once `a` is gone."""
    pods = [pod("a"), pod("rest", cpu="100m"), pod("b", on="n2", cpu="2")]
    on = cluster(NODES[:2], pods, {"a": 30, "rest": 45, "b": 5})

    assert why(decide(on, low()))["a"] == "no destination: the scheduler would likely choose n1, where it is"
    assert evicted(decide(on, low_anywhere())) == ["a"]


@pytest.mark.parametrize(
    ("fields", "third", "scene", "harm"),
    [
        pytest.param({}, {}, {"rest": {"n3": 40}}, "cpu above 50 %", id="it would be at 70"),
        pytest.param(
            {},
            {},
            {"measured": {"nodes": {"n1": points(75), "n2": points(5)}}},
            "whose usage is unknown",
            id="no figure",
        ),
        pytest.param(
            {"tolerations": ["*"]}, {"unschedulable": True}, {}, "cordoned", id="cordoned, which the pod tolerates"
        ),
    ],
)
def test_a_pod_that_would_land_where_it_does_harm_stays(fields, third, scene, harm):
    """Of n3 nothing is requested, so that the scheduler takes it."""
    pods = [pod("a", **fields), pod("rest", cpu="3"), pod("b", on="n2", cpu="2")]

    ledger = decide(cluster([*NODES[:2], node("n3", **third)], pods, {"a": 30, "rest": 45, "b": 5}, **scene), low())

    assert why(ledger)["a"] == f"no destination: the scheduler would likely choose n3, {harm}"


def test_what_is_refused_after_all_leaves_no_trace():
    """`a` would fill n2 but its PDB says no; so `b` finds n2 as it was."""
    pods = [pod("a", labels={"app": "a"}, cpu="100m"), pod("b", cpu="100m"), pod("rest", cpu="3")]
    on = cluster(NODES[:2], pods, {"a": 32, "b": 33, "rest": 15}, snapshot={"budgets": (pdb("a", 0),)})
    ledger = decide(on, low())

    assert (evicted(ledger), refused(ledger)) == (["b"], {"a": "PDB"})


def test_in_a_large_cluster_no_window_may_do_harm():
    """Of 200 nodes the scheduler scores 98, wherever it begins: n1 and half of the others.  The last 100 are empty.

    In a window that has none of them the pod lands on a node that is half full by requests, and full by usage.
    """
    nodes = [node(f"n{number:03}") for number in range(200)]
    pods = [pod("a", on="n000"), pod("rest", on="n000", cpu="3")]
    pods += [pod(f"q{number}", on=f"n{number:03}", cpu="3") for number in range(1, 100)]
    usage = {"a": 30, "rest": 45}
    full = decide(cluster(nodes, pods, usage, rest={f"n{number:03}": 40 for number in range(1, 100)}), low())
    calm = decide(cluster(nodes, pods, usage), low())

    assert (evicted(full), evicted(calm)) == ([], ["a"])
    assert full.refusals[0].verdict.cause.details["harm"]["resource"] == "cpu"
    (entry,) = calm.evictions
    assert len(entry.destination.nodes) + entry.destination.more > 16


def test_a_pod_that_the_scheduler_could_not_place_stays():
    """By requests n2 has room, but its host port is taken there; and on n1 as long as the pod ends."""
    placement = Placement(host_ports=(HostPort(80),))
    pods = [pod("a", placement=placement), pod("rest"), pod("b", on="n2", placement=placement)]
    ledger = decide(cluster(NODES[:2], pods, {"a": 30, "rest": 45, "b": 5}), low())

    assert why(ledger)["a"] == (
        "no destination: the scheduler would find none, 0/2 nodes are available: "
        "2 node(s) didn't have free ports for the requested pod ports."
    )


def test_pods_that_nobody_knows_where_they_land_stay_and_that_is_said_first():
    """Another scheduler places `a` and `a2`.  Where the policy says so, room is enough."""
    placement = Placement(scheduler="other")
    pods = [pod(name, placement=placement) for name in ("a", "a2")] + [pod("rest", cpu="3"), pod("b", on="n2", cpu="2")]
    on = cluster(NODES, pods, {"a": 15, "a2": 14, "rest": 45}, rest={"n3": 45})
    ledger = decide(on, low())

    unknown = "nothing is known of the scheduler 'other'"
    assert why(ledger)["a"] == why(ledger)["a2"] == f"no destination is known: {unknown}"
    assert notice_text(ledger.warnings[0]).startswith("2 of 3 pods stay since it is not known where they would land")
    assert len(decide(on, low_anywhere()).evictions) == 1


def test_a_file_without_templates_is_told_of_once():
    """As soon as the scheduler is asked, and not before."""
    pods = [pod(f"a{number}") for number in range(3)]
    calm, hot = (decide(cluster(NODES, pods, dict.fromkeys(("a0", "a1", "a2"), points)), low()) for points in (5, 25))

    assert not calm.warnings
    assert sum("neither controllers nor Services were read" in notice_text(each) for each in hot.warnings) == 1


def after_a_tie(used, *pods, full=95):
    """`a` (15 points) goes first, to n2 or n3, on which as much is requested; the plan counts on n2."""
    usage = {"a": 15, **{f"p{number}": points for number, points in enumerate(pods)}}
    rest = {"n1": full - sum(usage.values()), **used}
    cheap = {"a": {"priority": 0}}
    asked = [pod(name, **cheap.get(name, {"priority": 1})) for name in usage]
    return decide(cluster(NODES, [*asked, pod("much", cpu="3", priority=2)], {**usage, "much": None}, rest=rest), low())


def test_a_pod_that_does_harm_after_a_tie_stays():
    """If `a` is on n3, the next one lands on n2, which would be at 65; in turn it lands on n3, at 40."""
    ledger = after_a_tie({"n2": 35, "n3": 10}, 30)

    assert lands(ledger) == {"a": "n2"}
    assert why(ledger)["p0"] == ("no destination: the scheduler may choose n2, cpu above 50 %")


def hot(*names):
    """n1 at 80 of 50, 20 of which are of each named pod, of a StatefulSet; n2 has the most room, n3 a little less."""
    goes = [pod(name, owners=(make.owner(name, "StatefulSet"),)) for name in names]
    stays = [pod("rest", cpu="6", owners=(make.owner("agent", "DaemonSet"),)), pod("beside", on="n3", cpu="500m")]
    usage = {**dict.fromkeys(names, 20), "rest": 80 - 20 * len(names), "beside": 5}
    return cluster(NODES, [*goes, *stays], usage)


def named(ledger):
    return {each.pod.name: each.destination.nodes for each in (*ledger.evictions, *ledger.unknown)}


def test_both_nodes_are_named_where_the_one_evicted_later_may_come_first():
    """In turn db-a lands on n2; but the old db-b may end first, and its replacement takes n2."""
    assert named(decide(hot("db-a", "db-b"), low())) == {"db-a": ("n2", "n3"), "db-b": ("n2", "n3")}


@pytest.mark.parametrize("number", range(12))
def test_two_that_fill_a_node_together_are_not_expected_on_one(number):
    """Either lands on n0 or n2, as chance has it, and both on one node in few histories."""
    first, second = small_pod(f"a{number}", owners=f"x{number}"), small_pod(f"b{number}", owners=f"y{number}")
    used = {first.name: points(10, 12), second.name: points(0, 19), "stay": points(40, 60)}
    on = cluster([node("n0"), *NODES[:2]], [first, second, small_pod("stay", owners=None)], used)

    ledger = decide(on, low(20, 30))

    assert {*lands(ledger).values()} == {"n0", "n2"}


def test_how_often_a_pod_may_land_nowhere_is_told():
    """b has to be near a, which moves with it from a cordoned node; in some orders it comes first, and fits nowhere."""
    near = Placement(affinity=(PodAffinityTerm("kubernetes.io/hostname", make.selector(app="a")),))
    pods = [pod("a", labels={"app": "a"}), pod("b", placement=near), pod("rest", cpu="6", owners=None)]
    ledger = decide(
        cluster([node("n1", unschedulable=True), NODES[1]], pods, {"a": 20, "b": 20, "rest": 40}), low(targets=45)
    )

    assert because(ledger)["b"].endswith("likely lands on n2 (14 of 16, cpu 20 % -> 40 %), nowhere in 2 of 16")


def test_pods_that_may_have_gone_count_as_gone():
    sink = AnsweringSink(dict.fromkeys(("db-a", "db-b"), Unknown("no answer")))
    ledger = decide(hot("db-a", "db-b"), low(), sink=sink)

    assert named(ledger) == {"db-a": ("n2", "n3"), "db-b": ("n2", "n3")}
    assert not ledger.evictions


def test_one_that_goes_alone_lands_where_it_was_foreseen():
    """There is no other order."""
    assert named(decide(hot("db-a"), low(targets=60))) == {"db-a": ("n2",)}


def test_of_a_scheduler_that_nobody_knows_no_order_is_played():
    """The plan counts on a node with room, and names that one."""
    on = hot("db-a", "db-b")

    assert {len(nodes) for nodes in named(decide(on, low_anywhere())).values()} == {1}
    assert not any(map(on.index(Worlds).shares, on.snapshot.pods))
