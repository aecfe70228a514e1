"""LowNodeUtilization with `selection: relief`: which pods relieve a full node, in which order, and why."""

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Failed, Unknown
from rebalancer.report.words import notice_text, text
from tests.make import because, decide, evicted, owner, pdb, refused, says_no, why
from tests.measured import RELIEF, cluster, low, low_anywhere, node, pod, points
from tests.unit.engine.stand_ins import AnsweringSink

NODES = (node("n1"), node("n2"), node("n3"))
DAEMON = {"owners": [owner("agent", kind="DaemonSet")]}


def one_full(usage, nodes=NODES, fields=None, **scene):
    """Pods by name on n1, the first the oldest; n2 and n3 are idle.  `fields` by name of the pod."""
    pods = [pod(name, age=10_000 - number, **(fields or {}).get(name, {})) for number, name in enumerate(usage)]
    return cluster(nodes, pods, usage, **scene)


def test_a_pod_without_a_destination_gives_way_to_the_next():
    """55 fit nowhere below 50, so two others go; what was looked at is told."""
    ledger = decide(one_full({"a": 55, "b": 3, "c": 2}), low())

    assert evicted(ledger) == ["b", "c"]
    assert why(ledger) == {"a": "no destination: of 2 nodes 2 x cpu above 50 %"}
    assert [notice_text(each) for each in ledger.warnings if each.cause.code is not Code.CUSTOM] == [
        "test/LowNodeUtilization: n1 at cpu 55 % > 50 %: 5 points over, and nothing more may go that helps"
    ]


def test_of_many_nodes_that_stay_over_some_are_named():
    """Five, the furthest over first; the others are counted."""
    nodes = [*(node(f"n{number}") for number in range(7)), node("idle")]
    pods = [pod(f"p{number}", on=f"n{number}") for number in range(7)]
    ledger = decide(cluster(nodes, pods, {f"p{number}": 60 + number for number in range(7)}), low())

    told = [notice_text(each) for each in ledger.warnings if each.cause.code is not Code.CUSTOM]
    assert [each.split()[1] for each in told] == ["n6", "n5", "n4", "n3", "n2", "2"]


def test_protections_and_excluded_namespaces_hold():
    """A protected pod is refused; one of an excluded namespace is not asked for."""
    fields = {"daemon": DAEMON, "kept": {"namespace": "kept"}}
    ledger = decide(
        one_full({"daemon": 30, "kept": 30, "a": 30}, fields=fields), low(evictableNamespaces={"exclude": ["kept"]})
    )

    assert evicted(ledger) == ["a"]
    assert refused(ledger) == {"daemon": "DaemonSetPods"}


@pytest.mark.parametrize(
    ("limits", "expected"), [({"per_node": 1}, ["a", "q"]), ({"per_namespace": 1}, ["a"]), ({"total": 2}, ["a", "b"])]
)
def test_limits(limits, expected):
    """A node at its limit gives way to the next, a namespace to others, the total ends it."""
    pods = [pod("a"), pod("b"), pod("c"), pod("q", on="n4"), pod("r", on="n4")]
    usage = {"a": 30, "b": 30, "c": 30, "q": 29, "r": 29}
    on = cluster((*NODES, node("n4"), node("n5")), pods, usage)

    assert evicted(decide(on, low(), limits=Limits(**limits))) == expected


def test_a_node_at_its_limit_is_asked_for_no_more():
    ledger = decide(one_full({"a": 30, "b": 30, "c": 30}), low(), limits=Limits(per_node=1))

    assert refused(ledger) == {"b": "NodeLimit"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(says_no("PDB", "the server says no"), ["b", "c"], id="its place is free for the next"),
        pytest.param(Failed("refused"), ["b", "c"], id="the same for a failure"),
        pytest.param(Unknown("no answer"), ["b"], id="it may be gone, and its replacement comes"),
        pytest.param(says_no("Gone", "not found"), ["b"], id="it is gone, and nobody knows where to"),
    ],
)
def test_a_refused_pod_gives_its_place_back(answer, expected):
    """Each of 30 fills n2 to its target; n1 is 40 over."""
    on = one_full({"a": 30, "b": 30, "c": 30}, nodes=(node("n1"), node("n2"), node("n3")))

    assert evicted(decide(on, low(targets={"cpu": 50, "memory": 50}), sink=AnsweringSink({"a": answer}))) == expected


def test_an_owner_without_a_pdb_loses_a_quarter_at_most():
    """Of eight two go; of three with a PDB as many as it allows; one of two goes."""
    fields = {f"web{n}": {"owners": "web"} for n in range(8)}
    fields |= {f"db{n}": {"owners": "db", "labels": {"app": "db"}} for n in range(3)}
    fields |= {f"one{n}": {"owners": "one"} for n in range(2)}
    nodes = [node(f"n{number}") for number in range(1, 9)]
    on = one_full(dict.fromkeys(fields, 15), nodes=nodes, fields=fields, snapshot={"budgets": (pdb("db", 3),)})

    ledger = decide(on, low(targets={"cpu": 50, "memory": 50}))

    assert evicted(ledger) == ["web0", "web1", "db0", "db1", "db2", "one0"]
    assert why(ledger)["web2"] == (
        "ReplicaSet web has lost 2 of 8 pods in this cycle, and without a PDB a quarter is the most"
    )
    assert why(ledger)["one1"].startswith("ReplicaSet one has lost 1 of 2 pods")


def test_the_share_of_an_owner_counts_over_all_strategies_of_the_cycle():
    """The first run takes the one pod that the owner may lose; the second finds it lost."""
    on = one_full({"a": 30, "b": 30, "c": 30}, fields={name: {"owners": "web"} for name in "abc"})

    ledger = decide(on, low(), low())

    assert [(run.evicted, run.refused) for run in ledger.runs] == [(1, 2), (0, 2)]


def test_without_figures_for_pods_one_leaves_each_full_node():
    """The cheapest first, charged by requests; evictionLimits.node says how many instead."""
    usage, fields = {"a": None, "b": None, "c": None, "d": None}, {"a": {"cpu": "11"}}

    def fresh():
        return one_full(usage, fields=fields, rest={"n1": 80}, measured={"pods": None})

    ledger = decide(fresh(), low())
    assert because(ledger) == {
        "b": "n1 at cpu 80 % > 50 %: 30 points over; likely lands on n2 (10 of 16, cpu 0 % -> 1 %), else n3"
    }
    assert refused(ledger) == {"a": "NoDestination"}
    assert evicted(decide(fresh(), low(evictionLimits={"node": 2}))) == ["b", "c"]


def test_what_left_earlier_in_the_cycle_is_gone():
    """The second run sees the node without the pods that the first one took, though the figures are the same."""
    on = cluster(NODES[:2], [pod("a"), pod("b"), pod("c")], {"a": 30, "b": 30, "c": 20})
    ledger = decide(on, low(), low())

    assert [run.evicted for run in ledger.runs] == [1, 0]


@pytest.mark.parametrize(("rest", "goes"), [("90m", "old"), ("1h", "new"), ("0s", "new")])
def test_how_long_a_replacement_rests_is_for_the_policy_to_say(rest, goes):
    """The younger one cures best; it replaced another an hour ago."""
    pods = [pod("old", age=86_400, owners="web"), pod("new", age=3600, owners="web")]
    decider = low(metricsUtilization={**RELIEF, "rest": rest})

    assert evicted(decide(cluster(NODES, pods, {"old": 40, "new": 35}), decider)) == [goes]


def deviation(usage, strategy=low):
    """Pods of two percent each, so many on each node; the band reaches 10 points below and 30 above the mean."""
    nodes = [node(name) for name in usage]
    pods = [pod(f"{name}-{number}", on=name) for name, percent in usage.items() for number in range(percent // 2)]
    usage = {each.name: 2 for each in pods}
    return decide(cluster(nodes, pods, usage), strategy({"cpu": 10}, {"cpu": 30}, useDeviationThresholds=True))


def test_eight_moves_a_cycle_are_made_for_each_low_node():
    """Forecasts wear out: the next cycle knows where these landed.  The mean is about 30."""
    usage = {f"n{number:02}": 32 for number in range(26)}

    assert len(deviation({**usage, "n26": 2}).evictions) == 8
    assert len(deviation({**usage, "n26": 2, "n27": 2}, low_anywhere).evictions) == 16


def test_what_no_pod_can_run_on_is_not_filled_by_moves_between_other_nodes():
    """Nodes are at 48, 40, 20 and 5 %, and the band begins at 8.25 %.  Without its taint the last one is filled."""
    by_band = low({"cpu": 20}, {"cpu": 20}, useDeviationThresholds=True)

    def goes(**fields):
        nodes = [node("n1"), node("n2"), node("n3"), node("special", **fields)]
        usage = {"a": 8, "b": 40, "c": 20, "d": 20}
        pods = [pod("a"), pod("b", prefer_no_eviction=True), pod("c", on="n2", cpu="3"), pod("d", on="n3")]
        return evicted(decide(cluster(nodes, pods, usage, {"n2": 20, "special": 5}), by_band))

    assert goes() == ["a"]
    assert goes(taints=["gpu:NoSchedule"]) == []


def test_a_node_that_is_not_above_the_mean_any_more_donates_too():
    """One pod of 2 brings it from 32 to 30; the mean is 30.6."""
    usage = {f"n{number:02}": 32 for number in range(20)}
    reasons = [text(entry.because) for entry in deviation({**usage, "n20": 2}).evictions]

    assert reasons[0].startswith("n00 at cpu 32 % > 30.6 %: 1.4 points above the mean, and others are low; relieves ")
    assert reasons[-1].endswith(" within its band, and others are low; likely lands on n20")


def test_moves_are_no_more_than_four_fifths_of_the_nodes():
    """Two of four nodes are low: four moves would be for them."""
    assert len(deviation({"n1": 50, "n2": 46, "n3": 10, "n4": 10}).evictions) == 4
    assert len(deviation({"n1": 54, "n2": 10, "n3": 10}).evictions) == 3


@pytest.mark.parametrize(("with_nothing_to_donate", "goes"), [(19, True), (20, False)])
def test_the_search_ends_after_twenty_nodes_in_a_row_that_have_nothing_to_donate(with_nothing_to_donate, goes):
    """A large cluster has thousands; those that are fuller are asked first, and only the last has a pod that may go."""
    full = [f"f{number:02}" for number in range(with_nothing_to_donate)]
    nodes = [node(name) for name in (*full, "giver", "low")]
    pods = [pod(f"{name}-stays", on=name, owners=None) for name in full]
    pods += [pod(f"small{number}", on="giver") for number in range(10)]
    usage = {**{f"{name}-stays": 50 for name in full}, **{f"small{number}": 4.8 for number in range(10)}}

    ledger = decide(cluster(nodes, pods, usage), low({"cpu": 10}, {"cpu": 60}, useDeviationThresholds=True))

    assert bool(ledger.evictions) is goes


def test_room_that_pods_are_expected_to_take_is_taken_for_node_fit_too():
    """n2 has room by requests for one of the two pods that should go there."""
    nodes = [node("n1"), node("n2", pods=1)]
    pods = [pod(name) for name in ("a", "b")]
    on = cluster(nodes, pods, {"a": 15, "b": 14}, rest={"n1": 45})

    ledger = decide(on, low_anywhere(), evictor={"nodeFit": True})

    assert (evicted(ledger), refused(ledger)) == (["a"], {"b": "NodeFit"})


def test_a_figure_of_another_pod_of_that_name_counts_for_nothing():
    """web-0 was measured on n2 and runs on n1 since: what it uses here is unknown."""
    measured = {"pod_nodes": {("default", "web-0"): "n2"}, "nodes": {"n1": points(80), "n2": points(10)}}
    on = cluster(NODES[:2], [pod("web-0"), pod("rest")], {"web-0": 40, "rest": 51}, measured=measured)

    assert refused(decide(on, low())) == {"web-0": "NoUsage", "rest": "NoDestination"}
