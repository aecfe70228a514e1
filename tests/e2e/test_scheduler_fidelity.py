"""The simulated scheduler beside the real one, in small; `make fidelity` does it in large."""

from tests.e2e.binaries import provide
from tests.fidelity.comparison import Comparison
from tests.fidelity.trial import Plan, run


def test_pods_go_where_the_simulator_says(tell):
    """A hundred random pods on two random clusters: nodes, scores and reasons are the scheduler's."""
    comparison = Comparison()

    for plan in (Plan(seed=1, nodes=15, placements=50), Plan(seed=2, nodes=40, placements=50)):
        run(provide(), plan, comparison)

    tell(comparison.table())
    assert comparison.disagreements == []
    assert comparison.counts["placements"] + comparison.counts["unschedulable"] > 80
