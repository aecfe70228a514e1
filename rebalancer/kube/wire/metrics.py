"""Usage of nodes and pods from the JSON of metrics.k8s.io, as metrics-server writes it."""

from datetime import datetime

import msgspec

from rebalancer.cluster.measured import NodeMetrics, PodMetrics
from rebalancer.cluster.resources import Resources, add, parse_resources
from rebalancer.kube.wire.objects import Metadata, aware
from rebalancer.kube.wire.parts import Quantities


class NodeMetricsWire(msgspec.Struct):
    """A NodeMetrics as the API server writes it."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    timestamp: datetime | None = None
    usage: Quantities | None = None


def node_metrics(wire: NodeMetricsWire) -> NodeMetrics:
    """Return what a node uses.

    Raises:
        ValueError: a quantity cannot be read.
    """
    return NodeMetrics(wire.metadata.name, _sampled(wire.usage), aware(wire.timestamp))


class _UsedContainer(msgspec.Struct):
    usage: Quantities | None = None


class PodMetricsWire(msgspec.Struct):
    """A PodMetrics as the API server writes it."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    timestamp: datetime | None = None
    containers: list[_UsedContainer] | None = None


def pod_metrics(wire: PodMetricsWire) -> PodMetrics:
    """Return what a pod uses; empty if it has no containers.

    Raises:
        ValueError: a quantity cannot be read.
    """
    containers = [_sampled(each.usage) for each in wire.containers or ()]
    namespace = wire.metadata.namespace or "default"
    return PodMetrics(namespace, wire.metadata.name, _common_sums(containers), aware(wire.timestamp))


def _sampled(usage: Quantities | None) -> Resources:
    """Return the amounts of a sample; nothing uses less than nothing, so a negative one is not measured."""
    return {name: amount for name, amount in parse_resources(usage or {}).items() if amount >= 0}


def _common_sums(containers: list[Resources]) -> Resources:
    common = set.intersection(*(set(each) for each in containers)) if containers else set()
    sums: dict[str, int] = {}
    for each in containers:
        add(sums, {name: each[name] for name in sorted(common)})
    return sums
