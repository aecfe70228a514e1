"""Same cluster, same plan: the order of a file decides nothing."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.report.document import Circumstances, document
from strategies.pod_life_time import PodLifeTime
from strategies.remove_failed_pods import RemoveFailedPods
from strategies.remove_pods_violating_node_taints import RemovePodsViolatingNodeTaints
from tests import make
from tests.properties.crowds import BUDGETS, EVICTORS, LIMITS, NODES, pods

STRATEGIES = [
    kind(kind.Args.model_validate(args))
    for kind, args in (
        (RemovePodsViolatingNodeTaints, {}),
        (RemoveFailedPods, {"minPodLifetimeSeconds": 0}),
        (PodLifeTime, {"maxPodLifeTimeSeconds": 1}),
    )
]


def plan(nodes, crowd, budgets, evictor, limits):
    on = make.cluster(nodes, crowd, budgets=tuple(budgets))
    ledger = make.decide(on, *STRATEGIES, evictor=evictor, limits=limits)
    return json.dumps(document(ledger, on, Circumstances(True, {"file": "f"}, "newest", ())))


@given(NODES, pods(), BUDGETS, EVICTORS, LIMITS, st.data())
def test_the_order_of_the_objects_does_not_matter(nodes, crowd, budgets, evictor, limits, data):
    """Whole reports are equal, reasons and refusals included."""
    shuffled = [data.draw(st.permutations(each)) for each in (nodes, crowd, budgets)]

    assert plan(nodes, crowd, budgets, evictor, limits) == plan(*shuffled, evictor, limits)
