"""What to do about nodes without a sample that is fresh and can be believed.

They are left out, or their requests count instead, or the strategy gives up.

Example with `minFreshNodes: 80` and 10 nodes: if 8 have fresh samples, the two others are left out with a warning; if
only 7 have, the strategy fails.  With `whenMissing: requests` it never fails for this reason: each node without a
sample counts as using what its pods request.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources
from rebalancer.errors import StrategyError
from rebalancer.policy.usage import MetricsUtilization

_NAMED = 3
#: A node's figure is not believed where more than half of what its pods use is missing from it,
_CONTRADICTION = 2.0
#: and so much more in shares of its capacity: below that it is noise of samples taken at different times.
_NOISE = 0.01


def without_contradictions(found: Measured, cluster: Cluster) -> Measured:
    """Return usage without the nodes that seem to use far less than the pods on them: such a figure is not believed.

    Example: a node uses 1 core, and its pods use 2.1 cores together.  Pods were sent there, since it seemed to be idle.
    """
    if not found.pods:
        return found
    contradicted = {
        node.name: why
        for node in cluster.nodes
        if node.name in found.nodes and (why := _contradiction(node, found, cluster))
    }
    if not contradicted:
        return found
    return replace(
        found,
        nodes={name: used for name, used in found.nodes.items() if name not in contradicted},
        peaks={name: used for name, used in found.peaks.items() if name not in contradicted},
        missing={**found.missing, **contradicted},
    )


def _contradiction(node: Node, found: Measured, cluster: Cluster) -> str:
    pods = found.pods or {}
    measured = [pods[pod.key] for pod in cluster.active_pods_on(node) if pod.key in pods]
    for name, used in found.nodes[node.name].items():
        together = sum(each.get(name, 0) for each in measured)
        if together > _CONTRADICTION * used and together - used > _NOISE * node.capacity.get(name, 0):
            return f"its pods use more than twice the {name} that it seems to use: {together} and {used}"
    return ""


def without_missing_samples(
    found: Measured, wanted: MetricsUtilization, cluster: Cluster, resources: Iterable[str]
) -> Measured:
    """Return usage that is complete enough for a strategy.

    Nodes without a fresh sample get their requests as usage where the policy says `whenMissing: requests`.
    Otherwise they are left out with a warning, and at least `minFreshNodes` of all nodes must be left.

    Args:
        found: the source's figures; each node of the cycle has usage or is missing.
        wanted: the policy's `metricsUtilization`.
        cluster: the cycle's.
        resources: the resources for which requests may replace usage.

    Raises:
        StrategyError: too few nodes have fresh figures.
    """
    if not found.missing:
        return found
    if wanted.when_missing == "requests":
        return _with_requests(found, cluster, tuple(resources))
    total = len(cluster.nodes)
    fresh = total - len(found.missing)
    reasons = described(found.missing)
    if fresh * 100 < wanted.min_fresh_nodes * total:
        also = "".join(f"; {text}" for text in found.warnings)
        raise StrategyError(
            f"only {fresh} of {total} nodes have fresh usage, and minFreshNodes is {wanted.min_fresh_nodes:g} %: "
            f"{reasons}{also}"
        )
    return replace(
        found, warnings=(*found.warnings, f"nodes without fresh usage are neither source nor destination: {reasons}")
    )


def _with_requests(found: Measured, cluster: Cluster, resources: tuple[str, ...]) -> Measured:
    def only(amounts: Resources) -> Resources:
        return {name: amounts.get(name, 0) for name in resources}

    absent = [node for node in cluster.nodes if node.name in found.missing]
    stand_in = {node.name: only(cluster.used(node)) for node in absent}
    pods = found.pods if found.nodes else {}
    if pods is not None:
        pods = {**pods, **{pod.key: only(pod.spec.requests) for node in absent for pod in cluster.active_pods_on(node)}}
    return replace(
        found,
        nodes={**found.nodes, **stand_in},
        peaks={**found.peaks, **stand_in},
        pods=pods,
        missing={},
        warnings=(*found.warnings, f"requests stand in for missing usage: {described(found.missing)}"),
    )


def described(missing: Mapping[str, str]) -> str:
    """Return why nodes are missing: the first three by name, and how many more there are."""
    named = [f"{name} ({missing[name]})" for name in sorted(missing)[:_NAMED]]
    more = len(missing) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
