"""Usage from Prometheus, by queries of our own form: one for each resource, with unit and base declared.

Without a window, the present value counts.  With a window, quantiles count:

1. The window is divided into 30 steps, or fewer if they would be shorter than 15 s; NaN and negative values are gaps.
2. A node needs a present sample, and values for at least half of the steps.
3. `sourceQuantile` gives its usage as a source of pods, `destinationQuantile` its usage as a destination.

Example: a window of 30m has 30 steps of 60 s, so a node needs 15 values (5m: 20 steps of 15 s, 10 values).  A node
that used 1 core in 20 steps and 3 cores in 10 has 1000 millicores at quantile 0.5, and 3000 at quantile 0.95.
"""

from collections.abc import Mapping
from datetime import timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources
from rebalancer.policy.usage import PrometheusUsage
from rebalancer.usage.node_queries import NodeColumn
from rebalancer.usage.pod_queries import pod_figures
from rebalancer.usage.promql import Ask


def measured(ask: Ask, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster) -> Measured:
    """Return the usage of nodes, and of pods if there are queries for them.

    Args:
        ask: asks Prometheus about the time of the cycle.
        wanted: the queries.
        max_age: an older sample does not count, by `timestamp(query)`; None leaves it to Prometheus.
        cluster: the cycle's.

    Raises:
        SourceError: there is no answer, or one that cannot be used, like two series for one node.
    """
    columns = [NodeColumn(ask, name, wanted, max_age, cluster) for name in wanted.nodes]
    missing = {node.name: why for node in cluster.nodes if (why := _why_not(columns, node))}
    fresh = [node for node in cluster.nodes if node.name not in missing]
    pods = pod_figures(ask, wanted, cluster)
    return Measured(
        nodes={node.name: _amounts({column.resource: column.usual(node) for column in columns}) for node in fresh},
        peaks={node.name: _amounts({column.resource: column.peak(node) for column in columns}) for node in fresh},
        pods=pods.usage,
        pod_nodes=pods.nodes,
        missing=missing,
        window=wanted.window or timedelta(0),
        taken=min((column.taken for column in columns if column.taken), default=None),
        warnings=tuple(dict.fromkeys(text for column in columns for text in column.warnings)),
    )


def _why_not(columns: list[NodeColumn], node: Node) -> str:
    return " and ".join(reason for column in columns if (reason := column.why_not(node)))


def _amounts(amounts: Mapping[str, int | None]) -> Resources:
    return {name: used for name, used in amounts.items() if used is not None}
