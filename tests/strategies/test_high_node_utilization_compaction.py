"""HighNodeUtilization with `selection: compaction`: whole nodes, onto the nodes that stay in use."""

import msgspec
import pytest

from rebalancer.engine.limits import Limits
from rebalancer.eviction.destination import Destination
from rebalancer.eviction.verdict import GRANTED
from rebalancer.report.words import text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests.make import decide, evicted, owner, pdb, refused, says_no
from tests.measured import RELIEF, cluster, node, pod

PACKS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]}
    ],
}
SOURCE = {"source": "KubernetesMetrics"}
THREE = (node("n1"), node("n2"), node("n3"))


def compaction(thresholds=30, **args):
    given = {"thresholds": {"cpu": thresholds}, "selection": "compaction", **args}
    return HighNodeUtilization(HighNodeUtilizationArgs.model_validate(given))


def scene(places, nodes=THREE, fields=None, configuration=PACKS, **more):
    """Pods by name: the node, and how many points of cpu it requests and uses."""
    pods = [
        pod(name, on=on, cpu=f"{cpu}00m", memory=None, age=10_000 - number, **(fields or {}).get(name, {}))
        for number, (name, (on, cpu)) in enumerate(places.items())
    ]
    snapshot = {"scheduler_configuration": configuration, **more.pop("snapshot", {})}
    return cluster(nodes, pods, {name: cpu for name, (_, cpu) in places.items()}, snapshot=snapshot, **more)


def reasons(ledger):
    return {entry.pod.name: text(entry.verdict.cause) for entry in ledger.refusals}


def lands(ledger):
    return {entry.pod.name: entry.destination.nodes[0] for entry in ledger.evictions}


#: One pod on n1, two on n2, three on n3.
IDLE = {"a": ("n1", 10), "b": ("n2", 10), "c": ("n2", 9), "d": ("n3", 9), "e": ("n3", 8), "f": ("n3", 8)}


@pytest.mark.parametrize("measures", [{}, {"metricsUtilization": SOURCE}], ids=["requests", "usage"])
def test_all_nodes_may_be_underutilized(measures):
    """Two of three are emptied onto the third, which has received pods and stays."""
    ledger = decide(scene(IDLE), compaction(**measures))

    assert lands(ledger) == {"a": "n3", "b": "n3", "c": "n3"}
    assert ledger.refusals == []
    first = "n1 at cpu 10 % <= 30 %; likely lands on n3 (cpu 25 % -> 35 %)"
    assert text(ledger.evictions[0].because) == first


def test_without_it_nothing_is_done_where_all_nodes_are_underutilized():
    """The descheduler's rule wants nodes that are not."""
    strategy = HighNodeUtilization(HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 30}}))

    assert evicted(decide(scene(IDLE), strategy)) == []


def test_the_largest_pod_of_a_node_goes_first():
    """It is the hardest to place, and replacements arrive in that order."""
    places = {"small": ("n1", 2), "large": ("n1", 9), "middling": ("n1", 5), "z": ("n3", 50)}

    assert evicted(decide(scene(places), compaction())) == ["large", "middling", "small"]


def test_a_scheduler_that_spreads_would_put_the_pods_back():
    """Then nothing is evicted, and the reason tells."""
    ledger = decide(scene(IDLE, configuration=None), compaction())

    assert evicted(ledger) == []
    assert reasons(ledger)["a"].startswith(
        "no destination: the scheduler would likely choose n1, where it is; it keeps n1"
    )


def test_an_empty_node_stays_empty():
    """A pod that only an empty node could take stays where it is."""
    places = {"a": ("n1", 30), "b": ("n2", 80)}
    ledger = decide(scene(places), compaction())

    assert refused(ledger) == {"a": "NoDestination"}


def test_pods_of_a_node_need_a_place_together():
    """Beside 95 points there is room for one of two pods of 4; so neither goes."""
    places = {"a": ("n1", 4), "b": ("n1", 4), "z": ("n2", 95)}
    ledger = decide(scene(places, nodes=THREE[:2]), compaction())

    assert evicted(ledger) == []
    assert refused(ledger) == {"b": "NoDestination"}


@pytest.mark.parametrize(
    ("fields", "by", "reason"),
    [
        ({"owners": None}, "FailedBarePods", "has no owner"),
        ({"local_storage": True}, "PodsWithLocalStorage", "uses local storage"),
        ({"labels": {"app": "db"}}, "PDB", "PDB db allows none of its 0 disruptions any more"),
        ({"namespace": "kept"}, "NotSelected", "the strategy's arguments leave it alone"),
        (
            {"holding": "cluster-autoscaler.kubernetes.io/safe-to-evict"},
            "HoldsNode",
            "its annotation cluster-autoscaler.kubernetes.io/safe-to-evict holds the node against autoscalers",
        ),
    ],
)
def test_one_pod_that_stays_keeps_its_node(fields, by, reason):
    """The next node is emptied all the same."""
    on = scene(IDLE, fields={"a": fields}, snapshot={"budgets": (pdb("db", 0),)})
    ledger = decide(on, compaction(evictableNamespaces={"exclude": ["kept"]}))

    assert evicted(ledger) == ["b", "c"]
    assert refused(ledger) == {"a": by}
    assert reasons(ledger)["a"] == f"{reason}; it keeps n1, which is emptied whole or not at all"


def test_what_ends_with_its_node_keeps_no_node():
    """Pods of DaemonSets, mirror and static pods, terminating and finished ones, whatever their annotations."""
    fields = {
        "daemon": {"owners": [owner("agent", kind="DaemonSet")], "holding": "karpenter.sh/do-not-disrupt"},
        "mirror": {"mirror": True},
        "static": {"static": True},
        "leaving": {"terminating": True},
        "done": {"phase": "Succeeded"},
    }
    places = {"a": ("n1", 2), **dict.fromkeys(fields, ("n1", 1)), "z": ("n2", 50)}
    ledger = decide(scene(places, fields=fields), compaction())

    assert evicted(ledger) == ["a"]
    assert ledger.refusals == []


def test_nodes_that_no_autoscaler_removes_are_not_emptied():
    """By an annotation of the node, or without the label of node groups; they receive pods."""
    kept = msgspec.structs.replace(node("n1"), keeping="cluster-autoscaler.kubernetes.io/scale-down-disabled")
    no_group, group = node("n2"), node("n3", labels={"pool": "spot"})
    anywhere = {**SOURCE, "scheduler": "unknown"}
    strategy = compaction(nodeGroups={"label": "pool"}, metricsUtilization=anywhere)
    ledger = decide(scene(IDLE, nodes=(kept, no_group, group)), strategy)

    assert sorted(evicted(ledger)) == ["d", "e", "f"]
    assert ledger.refusals == []


def test_of_each_group_some_nodes_stay_in_use():
    """One of three may go where two are to be kept."""
    nodes = tuple(node(name, labels={"pool": "spot"}) for name in ("n1", "n2", "n3"))
    ledger = decide(scene(IDLE, nodes=nodes), compaction(nodeGroups={"label": "pool", "keep": 2}))

    assert evicted(ledger) == ["a"]
    assert reasons(ledger)["b"].startswith(
        "2 nodes of the group pool=spot are in use, and at least 2 are to stay so; it keeps n2"
    )


@pytest.mark.parametrize(("keep", "expected"), [(25, ["a"]), (25.1, [])])
def test_room_is_kept_free_on_the_nodes_in_use(keep, expected):
    """Of 10 cores each 4, 5 and 6 are requested: with two nodes 25 % are left, with one none."""
    places = {"a": ("n1", 40), "b": ("n2", 25), "c": ("n2", 25), "d": ("n3", 60)}
    ledger = decide(scene(places), compaction(50, keepFree={"cpu": keep}))

    assert evicted(ledger) == expected
    kept = "a" if not expected else "b"
    left = "0" if expected else "25"
    assert reasons(ledger)[kept].startswith(
        f"the other nodes would have {left} % of their cpu free, and {keep:g} % are to"
    )


def test_room_on_a_cordoned_node_does_not_count():
    """No pod may come there: without n1 there are 40 % free on n2 alone, not 65 % with n3."""
    nodes = (node("n1"), node("n2"), node("n3", unschedulable=True))
    places = {"a": ("n1", 10), "b": ("n2", 50), "c": ("n3", 10)}

    assert refused(decide(scene(places, nodes), compaction(keepFree={"cpu": 41})))["a"] == "KeepFree"
    assert "a" in evicted(decide(scene(places, nodes), compaction(keepFree={"cpu": 40})))


def test_by_usage_no_node_is_filled_above_its_ceiling():
    """70 % unless given; where the scheduler would do so, the pod stays."""
    places = {"a": ("n1", 20), "z": ("n2", 55)}
    nodes = THREE[:2]

    assert refused(decide(scene(places, nodes), compaction(metricsUtilization=SOURCE))) == {"a": "NoDestination"}
    wide = compaction(metricsUtilization=SOURCE, destinationThresholds={"cpu": 75})
    assert evicted(decide(scene(places, nodes), wide)) == ["a"]
    assert evicted(decide(scene(places, nodes), compaction())) == ["a"]


def test_of_an_unknown_scheduler_the_fullest_node_with_room_is_enough():
    """Nobody knows where the pod goes then."""
    places = {"a": ("n1", 5), "y": ("n2", 40), "z": ("n3", 50)}
    ledger = decide(scene(places), compaction(metricsUtilization={**SOURCE, "scheduler": "unknown"}))

    assert ledger.evictions[0].destination == Destination(("n3",))


def test_where_several_nodes_may_receive_none_of_them_is_emptied():
    """n2 and n3 are alike: the replacement may be on either."""
    places = {"a": ("n1", 5), "b": ("n2", 5), "b2": ("n2", 4), "c": ("n3", 5), "c2": ("n3", 4)}
    ledger = decide(scene(places), compaction())

    assert {each.pod.name: each.destination.nodes for each in ledger.evictions} == {"a": ("n2", "n3")}
    assert ledger.refusals == []


def test_a_pod_that_requests_nothing_moves_where_requests_decide():
    """It is an idle one; by usage it would be one of unknown usage."""
    places = {"a": ("n1", 0), "z": ("n2", 50)}

    assert evicted(decide(scene(places, THREE[:2]), compaction())) == ["a"]


@pytest.mark.parametrize(("number", "expected"), [(1, ["a"]), (2, [])])
def test_number_of_nodes_must_be_exceeded(number, expected):
    """Two nodes are idle, of which one is empty."""
    places = {"a": ("n1", 5), "z": ("n2", 50)}

    assert evicted(decide(scene(places), compaction(numberOfNodes=number))) == expected


def test_the_total_limit_ends_it():
    """Nodes with as many pods or more need not be tried."""
    ledger = decide(scene(IDLE), compaction(), limits=Limits(total=1))

    assert evicted(ledger) == ["a"]
    assert refused(ledger) == {"b": "TotalLimit"}


class Server:
    """A sink that refuses one pod."""

    def evict(self, pod, profile, strategy, because, recheck):
        return says_no("PDB", "the server says no") if pod.name == "c" else GRANTED


def test_when_the_server_says_no_the_rest_stays():
    """The node is not empty then, and may receive pods."""
    places = {"b": ("n1", 9), "c": ("n1", 8), "d": ("n1", 7), "z": ("n2", 50)}
    ledger = decide(scene(places), compaction(), sink=Server())

    assert evicted(ledger) == ["b"]
    assert refused(ledger) == {"c": "PDB"}


def test_nothing_to_empty_is_told():
    """The only node below the thresholds is empty."""
    run = decide(scene({"a": ("n1", 60)}, nodes=THREE[:2]), compaction()).runs[0]

    assert run.observed.obstacle == "NoneUnder"
    assert run.observed.counts == {"nodes": 2, "under": 1, "receivers": 1}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"keepFree": {"cpu": 10}}, "keepFree and nodeGroups go with selection: compaction only"),
        ({"nodeGroups": {"label": "pool"}}, "keepFree and nodeGroups go with selection: compaction only"),
        ({"selection": "compaction", "metricsUtilization": RELIEF}, "exclude each other"),
        ({"selection": "compaction", "nodeGroups": {"label": ""}}, "at least 1 character"),
        ({"selection": "compaction", "destinationThresholds": {"cpu": 10}}, "cpu are greater than their destination"),
    ],
)
def test_bad_arguments_are_told(args, message):
    """What means nothing, or contradicts itself, is an error."""
    with pytest.raises(ValueError, match=message):
        HighNodeUtilizationArgs.model_validate({"thresholds": {"cpu": 20}, **args})
