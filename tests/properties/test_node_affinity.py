"""RemovePodsViolatingNodeAffinity against a slow and obvious model, on random clusters."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PreferredTerm
from strategies.remove_pods_violating_node_affinity import PREFERRED, REQUIRED
from strategies.remove_pods_violating_node_affinity import RemovePodsViolatingNodeAffinity as Strategy
from tests import make
from tests.models import node_affinity as model
from tests.models.placement import World
from tests.properties import clusters


def template(dice):
    required = dice.some(2, dice.node_term)
    preferred = dice.some(2, lambda: PreferredTerm(dice.choice((1, 10, 50)), dice.node_term()))
    return dice.template(node_terms=dice.choice((None, required)), preferred=preferred)


CLUSTERS = clusters.clusters(template)
TYPES = st.permutations((REQUIRED, PREFERRED, "unknown")).flatmap(
    lambda each: st.sampled_from((each[:1], each[:2], each))
)


@given(CLUSTERS, TYPES, st.booleans())
def test_the_same_pods_go_in_the_same_order_as_in_the_model(drawn, types, node_fit):
    """Whatever the cluster and the types, the program decides like the model, and no pod goes twice."""
    nodes, pods = drawn
    args = Strategy.Args.model_validate({"nodeAffinityType": types})
    ledger = make.decide(make.cluster(nodes, pods), Strategy(args), evictor={"nodeFit": node_fit})

    assert [str(each.pod) for each in ledger.evictions] == model.evictions(World(nodes, pods, node_fit=node_fit), types)
