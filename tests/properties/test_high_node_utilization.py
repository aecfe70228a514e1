"""HighNodeUtilization decides as the model does."""

from hypothesis import event, given
from hypothesis import strategies as st

from rebalancer.engine.limits import Limits
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests import make
from tests.attack.seeds import examples
from tests.models.node_utilization import High
from tests.models.placement import World
from tests.properties.uneven_clusters import LIMITS, THRESHOLDS, percents, worlds

ARGS = st.fixed_dictionaries(
    {"thresholds": THRESHOLDS.flatmap(percents)},
    optional={
        "numberOfNodes": st.integers(0, 3),
        "evictableNamespaces": st.just({"exclude": ["bank"]}),
        "evictionModes": st.just(["OnlyThresholdingResources"]),
    },
)


@examples(100)
@given(worlds(), ARGS, LIMITS, st.booleans())
def test_it_decides_as_the_model_does(world, args, limits, node_fit):
    """The same pods in the same order."""
    nodes, pods = world
    expected = High(
        World(nodes, list(pods), node_fit=node_fit),
        thresholds=args["thresholds"],
        number_of_nodes=args.get("numberOfNodes", 0),
        excluded=frozenset(args.get("evictableNamespaces", {}).get("exclude", ())),
        limits=limits,
        only_thresholding="evictionModes" in args,
    )

    ledger = make.decide(
        make.cluster(nodes, pods),
        HighNodeUtilization(HighNodeUtilizationArgs.model_validate(args)),
        evictor={"nodeFit": node_fit},
        limits=Limits(per_node=limits.get("node")),
    )
    event(f"evictions: {min(len(ledger.evictions), 3)}")

    assert ledger.runs[0].error is None
    assert [str(entry.pod) for entry in ledger.evictions] == expected.evictions()
