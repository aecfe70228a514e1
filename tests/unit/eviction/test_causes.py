"""Causes and destinations as values, and how they come into ledger and report."""

import json
from typing import Any

import pytest

from rebalancer.api import Refused
from rebalancer.engine.evictor import Evictor
from rebalancer.engine.limits import Limits
from rebalancer.eviction.causes import Code, as_cause
from rebalancer.eviction.steering import Destination
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.document import Finished, document
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests.make import cluster, decide, node, pod
from tests.measured import cluster as measured_cluster
from tests.measured import low
from tests.measured import node as measured_node
from tests.measured import pod as measured_pod
from tests.unit.engine.stand_ins import Greedy, Scripted

NODES = (node("n1"), node("n2"))


def report(on: Any, *strategies: Any, **settings: Any) -> dict[str, Any]:
    """The report as programs read it."""
    ledger = decide(on, *strategies, **settings)
    whole = document(Finished(ledger, on, True, {"file": "x"}, "wall"))
    decoded: dict[str, Any] = json.loads(json.dumps(whole, allow_nan=False))
    return decoded


def test_refusals_of_other_packages_are_custom_too() -> None:
    def script(on: Any, evict: Any) -> None:
        evict.refuse(next(iter(on.pods())), "whim", Refused(as_cause("not on a Friday")))

    (refusal,) = report(cluster(NODES, [pod("a")]), Scripted(script))["refusals"]

    assert (refusal["by"], refusal["reason"]) == ("Custom", "not on a Friday")


def test_a_cause_has_its_figures_as_numbers_beside_its_code() -> None:
    """Programs need not take sentences apart; `by` is the cause's code."""
    found = report(cluster(NODES, [pod("a"), pod("b")]), Greedy(), limits=Limits(per_node=1))

    (refusal,) = found["refusals"]
    assert refusal["cause"] == {"code": "NodeLimit", "node": "n1", "used": 1, "limit": 1}
    assert refusal["by"] == refusal["cause"]["code"]


def test_relief_tells_what_it_measured_and_where_the_pod_will_likely_run() -> None:
    """Node, resource, before, after and target of the node it leaves; the node it lands on."""
    nodes = (measured_node("n1"), measured_node("n2"))
    on = measured_cluster(nodes, [measured_pod("a"), measured_pod("b")], {"a": 30, "b": 45})

    (eviction,) = report(on, low())["evictions"]

    assert eviction["destination"] == {"nodes": ["n2"], "more": 0, "share": [1.0]}
    figures = eviction["cause"]
    assert (figures["code"], figures["node"]) == ("OverTarget", "n1")
    assert figures["measured"] == [{"resource": "cpu", "before": 75.0, "after": 45.0, "target": 50}]
    assert (figures["points"], figures["relieved"]) == (25.0, 25.0)
    assert figures["landsOn"] == {"node": "n2", "filled": [{"resource": "cpu", "before": 0.0, "after": 30.0}]}


def test_without_a_forecast_there_is_no_destination() -> None:
    """The descheduler's own way to pick does not look where pods land; it does measure."""
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    pods = [pod("a", cpu="1"), pod("b", cpu="2")]

    evictions = report(cluster(NODES, pods), LowNodeUtilization(LowNodeUtilizationArgs.model_validate(args)))[
        "evictions"
    ]

    assert evictions[0]["destination"] is None
    (measured,) = evictions[0]["cause"]["measured"]
    assert (measured["before"], measured["target"]) == (75.0, 50)
    assert measured["after"] in (50.0, 25.0)


@pytest.mark.parametrize("count", [1, 2, 200, 240])
def test_a_destination_names_200_nodes_at_most_and_the_expected_one_first(count: int) -> None:
    likely = [f"n{number}" for number in range(count)]

    found = Destination.among(likely[-1], likely)

    assert found.nodes[0] == likely[-1]
    assert len(found.nodes) == len(set(found.nodes)) == min(count, 200)
    assert found.more == count - len(found.nodes)


def test_the_evictor_says_all_causes_in_order() -> None:
    """Protections first, then the way out, then replicas; whoever lifts one should know of the next."""
    lone = pod("a", cpu="99", local_storage=True, mirror=True)
    evictor = Evictor(cluster(NODES, [lone]), DefaultEvictorArgs(node_fit=True, min_replicas=2))

    found = [each.code for each in evictor.causes(lone)]

    assert found == [Code.MIRROR_PODS, Code.LOCAL_STORAGE, Code.NODE_FIT, Code.MIN_REPLICAS]
