"""RemoveDuplicates decides as the model does, and leaves no node fewer replicas than the upper average."""

from hypothesis import event, given
from hypothesis import strategies as st

from rebalancer.engine.limits import Limits
from strategies.remove_duplicates import RemoveDuplicates, RemoveDuplicatesArgs
from tests import make
from tests.attack.seeds import examples
from tests.models.placement import World
from tests.models.remove_duplicates import Duplicates
from tests.properties.uneven_clusters import LIMITS, worlds

ARGS = st.fixed_dictionaries(
    {},
    optional={"namespaces": st.just({"exclude": ["bank"]}), "excludeOwnerKinds": st.just(["Job"])},
)


def model(nodes, pods, args=None, **fields):
    args = args or {}
    return Duplicates(
        World(nodes, list(pods), node_fit=fields.pop("node_fit", False)),
        excluded_kinds=args.get("excludeOwnerKinds", ()),
        excluded_namespaces=args.get("namespaces", {}).get("exclude", ()),
        **fields,
    )


@examples(100)
@given(worlds(), ARGS, LIMITS, st.booleans())
def test_it_decides_as_the_model_does(world, args, limits, node_fit):
    """The same pods in the same order."""
    nodes, pods = world

    ledger = make.decide(
        make.cluster(nodes, pods),
        RemoveDuplicates(RemoveDuplicatesArgs.model_validate(args)),
        evictor={"nodeFit": node_fit},
        limits=Limits(per_node=limits.get("node")),
    )
    event(f"evictions: {min(len(ledger.evictions), 3)}")

    assert ledger.runs[0].error is None
    expected = model(nodes, pods, args, node_fit=node_fit, limits=limits).evictions()
    assert [str(entry.pod) for entry in ledger.evictions] == expected
