"""Usage from Prometheus, by queries of our own form: one for each resource, with unit and base declared.

Without a window the value of the moment counts.  With one, quantiles of the window count: the query is evaluated over
it in steps of a thirtieth, at least 15 s, and a node needs a sample now and values for at least half of the steps.
Values that are not numbers, or negative, are gaps.
"""

from collections.abc import Mapping
from datetime import timedelta

from rebalancer.args.usage import PrometheusUsage
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources
from rebalancer.usage.node_queries import NodeColumn
from rebalancer.usage.pod_queries import pod_figures
from rebalancer.usage.promql import Ask


def measured(ask: Ask, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster) -> Measured:
    """Return the usage of nodes, and of pods if there are queries for them.

    Args:
        ask: the Prometheus at the time of the cycle.
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
