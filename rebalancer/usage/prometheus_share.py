"""Usage from Prometheus in the descheduler's form: one query, the node's name in the label `instance`, values 0 to 1.

A series that breaks this form fails the strategy, as in the descheduler; so does NaN, which the descheduler accepts.
"""

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.resources import METRIC_RESOURCE, Resources
from rebalancer.errors import SourceError
from rebalancer.usage.promql import Ask, Sample

_LABEL = "instance"


def measured(ask: Ask, query: str, cluster: Cluster) -> Measured:
    """Return how full nodes are, in whole percent rounded down; of two series for a node the last one counts.

    Raises:
        SourceError: there is no answer, or a series breaks the form.
    """
    shares: dict[str, int] = {}
    for sample in ask(query):
        shares[_node(sample)] = _percent(sample)
    nodes: dict[str, Resources] = {
        node.name: {METRIC_RESOURCE: shares[node.name]} for node in cluster.nodes if node.name in shares
    }
    missing = {node.name: "no sample" for node in cluster.nodes if node.name not in shares}
    return Measured(nodes, nodes, missing=missing, warnings=_about_strangers(shares, cluster))


def _node(sample: Sample) -> str:
    if _LABEL not in sample.metric:
        raise SourceError(f"the series {sample} has no label {_LABEL}, which should hold the name of its node")
    return sample.metric[_LABEL]


def _percent(sample: Sample) -> int:
    if not 0 <= sample.value <= 1:  # true for NaN too
        raise SourceError(f"the series {sample} has the value {sample.value:g}, which is not between 0 and 1")
    return int(sample.value * 100)


def _about_strangers(shares: dict[str, int], cluster: Cluster) -> tuple[str, ...]:
    strangers = sorted(name for name in shares if cluster.node(name) is None)
    if not strangers:
        return ()
    return (f"{len(strangers)} series are about no node of the cluster, the first has {_LABEL} {strangers[0]!r}",)
