"""HighNodeUtilization with `selection: compaction`: whole nodes, onto the nodes that stay in use."""

import pytest

from rebalancer.engine.limits import Limits
from rebalancer.report.words import text
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests.make import decide, evicted, lands, owner, pdb, refused, why
from tests.measured import PACKS, cluster, node, pod

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


def test_a_scheduler_that_spreads_would_put_the_pods_back():
    ledger = decide(scene(IDLE, configuration=None), compaction())

    assert evicted(ledger) == []
    assert why(ledger)["a"].startswith("no destination: the scheduler would likely choose n1, where it is; it keeps n1")


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
    on = scene(IDLE, fields={"a": fields}, snapshot={"budgets": (pdb("db", 0),)})
    ledger = decide(on, compaction(evictableNamespaces={"exclude": ["kept"]}))

    assert evicted(ledger) == ["b", "c"]
    assert refused(ledger) == {"a": by}
    assert why(ledger)["a"] == f"{reason}; it keeps n1, which is emptied whole or not at all"


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


def test_of_each_group_some_nodes_stay_in_use():
    nodes = tuple(node(name, labels={"pool": "spot"}) for name in ("n1", "n2", "n3"))
    ledger = decide(scene(IDLE, nodes=nodes), compaction(nodeGroups={"label": "pool", "keep": 2}))

    assert evicted(ledger) == ["a"]
    assert why(ledger)["b"].startswith(
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
    assert why(ledger)[kept].startswith(f"the other nodes would have {left} % of their cpu free, and {keep:g} % are to")


def test_the_total_limit_ends_it():
    """Nodes with as many pods or more need not be tried."""
    ledger = decide(scene(IDLE), compaction(), limits=Limits(total=1))

    assert evicted(ledger) == ["a"]
    assert refused(ledger) == {"b": "TotalLimit"}


def test_nothing_to_empty_is_told():
    """The only node below the thresholds is empty."""
    run = decide(scene({"a": ("n1", 60)}, nodes=THREE[:2]), compaction()).runs[0]

    assert run.observed.obstacle == "NoneUnder"
    assert run.observed.counts == {"nodes": 2, "under": 1, "receivers": 1}
