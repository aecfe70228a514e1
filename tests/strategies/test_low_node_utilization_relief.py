"""LowNodeUtilization with `selection: relief`: which pods relieve a full node, in which order, and why."""

import pytest

from rebalancer.cluster.pod import PodAffinityTerm
from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import GRANTED, Failed, Unknown
from rebalancer.report.words import notice_text, text
from tests.make import decide, evicted, owner, pdb, refused, says_no, selector
from tests.measured import cluster, low, low_anywhere, node, pod, points

NODES = (node("n1"), node("n2"), node("n3"))
DAEMON = {"owners": [owner("agent", kind="DaemonSet")]}


def one_full(usage, nodes=NODES, fields=None, **scene):
    """Pods by name on n1, the first the oldest; n2 and n3 are idle.  `fields` by name of the pod."""
    pods = [pod(name, age=10_000 - number, **(fields or {}).get(name, {})) for number, name in enumerate(usage)]
    return cluster(nodes, pods, usage, **scene)


def because(ledger):
    return {entry.pod.name: text(entry.because) for entry in ledger.evictions}


def why(ledger):
    return {entry.pod.name: text(entry.verdict.cause) for entry in ledger.refusals}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param({"a": 40, "b": 23, "c": 20}, ["a"], id="33 over and 40 alone cures"),
        pytest.param({"a": 40, "b": 35, "c": 8}, ["b"], id="33 over: 35 has 2 left over, 40 has 7"),
        pytest.param({"a": 20, "b": 25, "c": 5, "d": 5, "e": 30}, ["e", "c"], id="35 over: 30 leaves 5, and 5 cures"),
        pytest.param({"a": 30, "b": 30, "c": 30}, ["a", "b"], id="40 over: equal ones by age"),
        pytest.param({"a": 30, "b": 20}, [], id="at the target is not over"),
        pytest.param({"a": 37, "kept": 47.5, "b": 2.5, "c": 2.5}, ["a", "b"], id="39.5 over: 2.5 is little but cures"),
        pytest.param({"a": 30, "kept": 51, "b": 2.5, "c": 2.5}, ["a"], id="36 over: 2.5 is less than a tenth"),
    ],
)
def test_the_pod_that_cures_with_the_least_left_over(usage, expected):
    """Else the one that leaves the least; never one that takes less than a tenth of the first excess without curing."""
    assert evicted(decide(one_full(usage, fields={"kept": DAEMON}), low())) == expected


def test_excess_is_summed_over_the_resources_above_target():
    """10 of cpu and 20 of memory are over: `big` takes 25 of 30, `fit` all of them, and `c` no more than 10."""
    usage = {"big": points(5, 30), "fit": points(12, 21), "c": points(30, 0), "rest": points(13, 19)}
    ledger = decide(one_full(usage), low())

    assert because(ledger) == {
        "fit": "n1 at cpu 60 % > 50 %, memory 70 % > 50 %: 30 points over; relieves 30 points; likely lands on n2 "
        "(12 of 16, cpu 0 % -> 12 %, memory 0 % -> 21 %), else n3"
    }


def test_reasons_carry_the_figures_of_their_moment():
    """What was over, how much the pod takes of it, and how full the likely destination becomes."""
    ledger = decide(one_full({"a": 40, "b": 30.5, "c": 30}), low())

    assert because(ledger) == {
        "a": "n1 at cpu 100.5 % > 50 %: 50.5 points over; relieves 40 points; "
        "likely lands on n2 (10 of 16, cpu 0 % -> 40 %), else n3",
        "c": "n1 at cpu 60.5 % > 50 %: 10.5 points over; relieves 10.5 points; "
        "likely lands on n3 (10 of 16, cpu 0 % -> 30 %), else n2",
    }


def test_cheaper_classes_go_before_dearer_ones():
    """Priority and QoS before relief: 8, 9 and 9 of BestEffort go before the 33 that would be enough."""
    fields = {name: {"qos": "BestEffort"} for name in ("x", "y", "z")} | {"b": {"priority": 5}}
    ledger = decide(one_full({"a": 33, "b": 24, "x": 8, "y": 9, "z": 9}, fields=fields), low_anywhere())

    assert evicted(ledger) == ["y", "z", "x", "a"]


def test_pods_of_jobs_go_last_among_their_like():
    """The Job's pod would be exactly enough, and goes only once no other helps; before costlier classes."""
    fields = {"job": {"owners": [owner("sum", kind="Job")]}, "costly": {"priority": 9}}

    assert evicted(decide(one_full({"job": 30, "a": 40, "costly": 10}, fields=fields), low())) == ["a"]
    assert evicted(decide(one_full({"costly": 50, "job": 30, "a": 8}, fields=fields), low())) == ["a", "job"]


def test_pods_without_usage_stay():
    """Unknown or nothing: nobody could tell what their move is good for."""
    ledger = decide(one_full({"unknown": None, "nothing": 0, "a": 60}), low(targets={"cpu": 59, "memory": 59}))

    assert why(ledger)["unknown"] == "its usage of cpu, memory is unknown"
    assert refused(ledger) == {"unknown": "NoUsage", "nothing": "NoUsage", "a": "NoDestination"}


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


@pytest.mark.parametrize(
    ("fields", "nodes", "reason"),
    [
        ({"cpu": "11"}, (), "2 x insufficient cpu"),
        ({"node_selector": {"disk": "ssd"}}, (), "2 x node selector or affinity does not match"),
        ({}, (node("n2", taints=["a:NoSchedule"]), node("n3", pods=0)), "1 x no free pod slot, 1 x taint a:NoSchedule"),
    ],
)
def test_it_has_to_fit_whatever_node_fit_says(fields, nodes, reason):
    """Requests, affinity and taints of the underutilized nodes count although nodeFit is off."""
    ledger = decide(
        one_full({"a": 60}, nodes=(node("n1"), *(nodes or NODES[1:])), fields={"a": fields}), low(targets=55)
    )

    assert refused(ledger) == {"a": "NoDestination"}
    assert reason in why(ledger)["a"]


def test_only_underutilized_nodes_are_destinations():
    """n2 is at 21 and so none; n4 is idle and cordoned."""
    nodes = (node("n1"), node("n2"), node("n3", pods=1), node("n4", unschedulable=True))
    on = one_full({"a": 30, "b": 30, "c": 29}, nodes=nodes, rest={"n2": 21})
    ledger = decide(on, low_anywhere())

    assert evicted(ledger) == ["a"]
    assert why(ledger)["b"] == "no destination: of 1 nodes 1 x no free pod slot"


def test_destinations_are_judged_by_their_peak():
    """n2 has the median 5 and the peak 21, n3 5 and 20: n3 is under and has 30 to give."""
    nodes = {"n1": points(90), "n2": points(5), "n3": points(5)}
    peaks = {"n1": points(95), "n2": points(21), "n3": points(20)}
    ledger = decide(one_full({"a": 31, "b": 30, "c": 29}, measured={"nodes": nodes, "peaks": peaks}), low_anywhere())

    assert because(ledger) == {
        "b": "n1 at cpu 90 % > 50 %: 40 points over; relieves 30 points; likely lands on n3 (cpu 20 % -> 50 %)",
    }


def test_destinations_take_the_most_free_by_requests_first():
    """n3 has two cores more to give than n2; after a pod of three cores it is n2's turn."""
    pods = [pod("a", cpu="3"), pod("b", cpu="3"), pod("c"), pod("q", on="n2", cpu="2")]
    ledger = decide(cluster(NODES, pods, {"a": 15, "b": 15, "c": 45, "q": 1}), low())

    assert ["n3" in text for text in because(ledger).values()] == [True]

    only_room = low_anywhere(targets={"cpu": 48, "memory": 50})
    ledger = decide(cluster(NODES, pods, {"a": 20, "b": 20, "c": 49, "q": 1}), only_room)
    assert {name: text.partition("likely lands on ")[2][:2] for name, text in because(ledger).items()} == {
        "a": "n3",
        "b": "n2",
    }


def test_anti_affinity_counts_between_pods_of_one_plan():
    """Replicas that repel each other are not sent to one node: two nodes take two."""
    repels = PodAffinityTerm("kubernetes.io/hostname", selector(app="db"))
    alone = {"labels": {"app": "db"}, "anti_affinity": (repels,)}
    ledger = decide(one_full(dict.fromkeys("abcde", 20), fields=dict.fromkeys("abcde", alone)), low())

    assert evicted(ledger) == ["a", "b"]
    assert (
        why(ledger)["c"]
        == "no destination: of 2 nodes 1 x anti-affinity against default/a, 1 x anti-affinity against default/b"
    )


def test_the_node_furthest_over_goes_first():
    """n1 has more bytes, n2 more points: n2 is first, and takes what room there is."""
    nodes = [node("n1", memory="1000Gi"), node("n2", memory="10Gi"), node("n3", memory="10Gi")]
    usage = {
        "a": {"cpu": 100, "memory": 600 << 30},
        "b": {"cpu": 100, "memory": 5 << 30},
        "c": {"cpu": 100, "memory": 3 << 30},
    }
    on = cluster(nodes, [pod("a"), pod("b", on="n2"), pod("c", on="n2")], usage)

    assert evicted(decide(on, low_anywhere())) == ["c"]


@pytest.mark.parametrize("number", [2, 3])
def test_nothing_moves_unless_enough_nodes_are_underutilized(number):
    """Two are, which is not more than numberOfNodes."""
    assert evicted(decide(one_full({"a": 30, "b": 30}), low(numberOfNodes=number))) == []


def test_a_balanced_cluster_is_left_alone():
    """All are within; and where all are full there is not a destination."""
    pods = [pod("a"), pod("b", on="n2"), pod("c", on="n3")]

    for usage in (40, 90):
        ledger = decide(cluster(NODES, pods, dict.fromkeys("abc", usage)), low())
        assert (ledger.evictions, ledger.refusals) == ([], [])


def test_deviation_is_from_the_mean_of_nodes_with_fresh_figures():
    """80, 40 and 0 have the mean 40; n4 is missing and does not count, as a destination neither."""
    nodes = (*NODES, node("n4"))
    pods = [pod("a"), pod("b"), pod("q", on="n2"), pod("lost", on="n4")]
    usage = {"a": 50, "b": 30, "q": 40, "lost": None}
    fresh = {"n1": points(80), "n2": points(40), "n3": points(0)}
    ledger = decide(
        cluster(nodes, pods, usage, measured={"nodes": fresh, "missing": {"n4": "no sample"}}),
        low({"cpu": 10}, {"cpu": 15}, useDeviationThresholds=True),
    )

    assert because(ledger) == {
        "b": "n1 at cpu 80 % > 55 %: 25 points over; relieves 25 points; likely lands on n3 (cpu 0 % -> 30 %)",
    }


def test_pods_count_where_thresholds_name_them():
    """Eight of ten slots are taken; five may be, and a pod whose cpu is unknown to the thresholds goes all the same."""
    nodes = (node("n1", pods=10), node("n2", pods=10))
    usage = {f"p{number}": 1 for number in range(8)}
    ledger = decide(one_full(usage, nodes=nodes), low({"pods": 30}, {"pods": 50}))

    assert evicted(ledger) == ["p0", "p1", "p2"]
    assert because(ledger)["p0"].startswith(
        "n1 at pods 80 % > 50 %: 30 points over; relieves 10 points; likely lands on n2"
    )


def test_what_is_not_measured_is_an_error():
    """An extended resource has requests and no usage."""
    ledger = decide(one_full({"a": 60}), low({"example.com/gpu": 20}, {"example.com/gpu": 50}))

    assert ledger.runs[0].error == "thresholds name example.com/gpu, which this source does not measure"


def test_memory_without_a_target_may_be_used_up_to_the_whole():
    """The pod of 60 of memory does not fit beside 50, though thresholds name cpu only."""
    ledger = decide(
        one_full({"a": points(30, 60), "b": points(40, 10)}, nodes=NODES[:2], rest={"n2": points(0, 50)}),
        low({"cpu": 20}, {"cpu": 50}),
    )

    assert evicted(ledger) == ["b"]


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
    """One refusal says so, not one for each pod."""
    ledger = decide(one_full({"a": 30, "b": 30, "c": 30}), low(), limits=Limits(per_node=1))

    assert refused(ledger) == {"b": "NodeLimit"}


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (1, ["a"]), (None, ["a", "b"])])
def test_eviction_limits_hold_per_node(limit, expected):
    """evictionLimits.node is the most from each."""
    ledger = decide(one_full({"a": 30, "b": 30, "c": 30}), low(evictionLimits={"node": limit}))

    assert evicted(ledger) == expected


class Server:
    """A sink that answers for single pods and grants the rest."""

    def __init__(self, **answers):
        self.answers = answers

    def evict(self, pod, profile, strategy, because, recheck):
        return self.answers.get(pod.name, GRANTED)


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

    assert evicted(decide(on, low(targets={"cpu": 50, "memory": 50}), sink=Server(a=answer))) == expected


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
        "b": "n1 at cpu 80 % > 50 %: 30 points over; likely lands on n2 (12 of 16, cpu 0 % -> 1 %), else n3"
    }
    assert refused(ledger) == {"a": "NoDestination"}
    assert evicted(decide(fresh(), low(evictionLimits={"node": 2}))) == ["b", "c"]
