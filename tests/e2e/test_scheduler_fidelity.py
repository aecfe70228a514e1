"""The simulated scheduler beside the real one, in small; `make fidelity` does it in large."""

from collections.abc import Callable

import pytest

from tests.e2e.binaries import provide
from tests.e2e.conftest import existing_kubeconfig
from tests.fidelity.comparison import Comparison
from tests.fidelity.trial import Plan, run


def test_pods_go_where_the_simulator_says(tell: Callable[[str], None]) -> None:
    """A hundred random pods on two random clusters: nodes, scores and reasons are the scheduler's."""
    if existing_kubeconfig():
        pytest.skip("needs a control plane of its own, not the one of REBALANCER_E2E_KUBECONFIG")
    comparison = Comparison()

    for plan in (Plan(seed=1, nodes=15, placements=50), Plan(seed=2, nodes=40, placements=50)):
        run(provide(), plan, comparison)

    tell(comparison.table())
    assert comparison.disagreements == []
    assert comparison.counts["placements"] + comparison.counts["unschedulable"] > 80
