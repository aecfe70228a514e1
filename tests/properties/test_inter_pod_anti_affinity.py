"""RemovePodsViolatingInterPodAntiAffinity against a slow and obvious model, on random clusters."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cluster.pod import PodAffinityTerm
from strategies.remove_pods_violating_inter_pod_anti_affinity import (
    RemovePodsViolatingInterPodAntiAffinity as Strategy,
)
from tests import make
from tests.models import inter_pod_anti_affinity as model
from tests.models.placement import World
from tests.properties import clusters


def template(dice):
    keys = ("app", "hash")
    return dice.template(
        anti_affinity=dice.some(
            2,
            lambda: PodAffinityTerm(
                topology_key=dice.choice(("zone", "kubernetes.io/hostname", "disk")),
                selector=dice.selector(),
                namespaces=dice.some(2, lambda: dice.choice(clusters.NAMESPACES)),
                namespace_selector=dice.often(None, make.selector(), make.selector(team="x")),
                match_label_keys=dice.often((), (dice.choice(keys),)),
                mismatch_label_keys=dice.often((), (dice.choice(keys),)),
            ),
        )
    )


CLUSTERS = clusters.clusters(template)


@given(CLUSTERS, st.booleans(), st.sampled_from((None, {"shop": {"team": "x"}, "bank": {}})))
def test_the_same_pods_go_in_the_same_order_as_in_the_model(drawn, node_fit, namespaces):
    """Terms are read as Kubernetes reads them; whatever the cluster, the program decides like the model."""
    nodes, pods = drawn
    on = make.cluster(nodes, pods, namespaces=namespaces)
    ledger = make.decide(on, Strategy(Strategy.Args()), evictor={"nodeFit": node_fit})

    expected = model.evictions(World(nodes, pods, namespaces, node_fit))
    assert [str(each.pod) for each in ledger.evictions] == expected
