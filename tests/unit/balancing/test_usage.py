"""Sources that know nothing but shares of nodes, and resources that a source does not measure."""

import pytest

from rebalancer.balancing.usage import MeasuredUsage
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.errors import StrategyError
from rebalancer.report.words import text
from tests.make import decide, snapshot
from tests.measured import cluster, low, node, pod, points


def test_a_share_of_the_node_is_a_resource_too():
    """A source that knows nothing else: the pod is charged with its largest share of requests, rounded up."""
    on = Cluster(
        snapshot([node("n1"), node("n2")], [pod("a", cpu="2010m", memory="10Gi"), pod("b")]),
        measure=lambda *_: Measured(*[{"n1": {"MetricResource": 70}, "n2": {"MetricResource": 20}}] * 2),
    )
    ledger = decide(on, low({"MetricResource": 20}, {"MetricResource": 50}))

    assert [text(entry.because) for entry in ledger.evictions] == [
        "n1 at MetricResource 70 % > 50 %: 20 points over; likely lands on n2 (MetricResource 20 % -> 41 %)"
    ]


def test_what_is_not_measured_is_an_error_even_if_pods_request_it():
    """Where no node has a fresh sample there is nothing to compare with."""
    on, figures = cluster([node("n1")], [], {}), {"n1": points(1)}

    with pytest.raises(StrategyError, match=r"thresholds name example\.com/gpu, which this source does not measure"):
        MeasuredUsage(on, Measured(figures, figures), ["cpu", "example.com/gpu"])
    assert MeasuredUsage(on, Measured({}, {}), ["example.com/gpu"]).nodes() == []
