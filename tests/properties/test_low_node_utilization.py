"""LowNodeUtilization decides as the model does, and never touches a node that is not over."""

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from rebalancer.engine.limits import Limits
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.attack.seeds import examples
from tests.models.node_utilization import Low
from tests.models.placement import World
from tests.properties.uneven_clusters import LIMITS, THRESHOLDS, percents, worlds


@st.composite
def args(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(THRESHOLDS)
    one, other = draw(percents(names)), draw(percents(names))
    deviation = draw(st.booleans())
    low = one if deviation else {name: min(one[name], other[name]) for name in names}
    high = other if deviation else {name: max(one[name], other[name]) for name in names}
    optional = {
        "numberOfNodes": st.integers(0, 3),
        "evictableNamespaces": st.just({"exclude": ["bank"]}),
        "evictionLimits": st.integers(0, 3).map(lambda node: {"node": node}),
    }
    rest = draw(st.fixed_dictionaries({}, optional=optional))
    return {"thresholds": low, "targetThresholds": high, "useDeviationThresholds": deviation, **rest}


def model(world, given_args, limits):
    nodes, pods, node_fit = world
    source = given_args.get("evictionLimits", {})
    return Low(
        World(nodes, list(pods), node_fit=node_fit),
        thresholds=given_args["thresholds"],
        targets=given_args["targetThresholds"],
        deviation=given_args["useDeviationThresholds"],
        number_of_nodes=given_args.get("numberOfNodes", 0),
        excluded=frozenset(given_args.get("evictableNamespaces", {}).get("exclude", ())),
        limits={**limits, **({"source": source["node"]} if source else {})},
    )


@examples(50)
@given(worlds(), args(), LIMITS, st.booleans())
def test_it_decides_as_the_model_does(world, given_args, limits, node_fit):
    """The same pods in the same order, none from a node that is not over, and none at all when no node is under."""
    nodes, pods = world
    expected = model((nodes, pods, node_fit), given_args, limits)
    under, over = expected.classified()

    ledger = make.decide(
        make.cluster(nodes, pods),
        LowNodeUtilization(LowNodeUtilizationArgs.model_validate(given_args)),
        evictor={"nodeFit": node_fit},
        limits=Limits(per_node=limits.get("node")),
    )
    event(f"evictions: {min(len(ledger.evictions), 3)}")

    assert ledger.runs[0].error is None
    assert [str(entry.pod) for entry in ledger.evictions] == expected.evictions()
    assert {entry.pod.node for entry in ledger.evictions} <= {node.name for node in over}
    assert under or not ledger.evictions
