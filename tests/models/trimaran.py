"""Trimaran's scores, written down as slowly and plainly as can be: from scratch for each pod and node."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from rebalancer.cluster.measured import NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod


def whole(number: float) -> int:
    """Round as Go does."""
    return int(Decimal(number).quantize(Decimal(1), rounding=ROUND_HALF_UP))


def expected_cpu(pod: Pod, multiplier: float, assumed: int) -> int:
    total = pod.spec.placement.overhead_cpu
    for container in pod.spec.placement.cpus:
        if container.limit is not None:
            total += container.limit
        elif container.request is not None:
            total += whole(container.request * multiplier)
        else:
            total += assumed
    return total


def packing(
    pod: Pod, node: Node, there: Sequence[Pod], loads: NodeLoads, target: int, multiplier: float, assumed: int
) -> int:
    """TargetLoadPacking; `there` are the pods on the node, those without a node of their own are only expected."""
    percents = [
        each.percent
        for each in loads.figures.get(node.name, ())
        if each.type == "CPU" and each.operator in ("AVG", "Latest")
    ]
    if not percents:
        return 0
    missing = 0
    for other in there:
        if not other.node or is_unmeasured(other, loads.ended):
            missing += expected_cpu(other, multiplier, assumed)
    capacity = node.capacity["cpu"]
    used = percents[-1] / 100 * capacity
    busy = 100 * (used + expected_cpu(pod, multiplier, assumed) + missing) / capacity
    if busy > 100 and target < busy:
        return 0
    if busy > target:
        return whole(target * (100 - busy) / (100 - target))
    return whole((100 - target) * busy / target + target)


def is_unmeasured(pod: Pod, ended: datetime) -> bool:
    bound = pod.created
    if pod.started:
        bound = pod.started
    for condition in pod.conditions:
        if condition.type == "PodScheduled" and condition.status == "True" and condition.changed:
            bound = condition.changed
    return ended.replace(microsecond=0) - bound.replace(microsecond=0) < timedelta(seconds=60)


def balancing(pod: Pod, node: Node, loads: NodeLoads, margin: float, sensitivity: float) -> int:
    """LoadVariationRiskBalancing."""
    scores = []
    for name, kind in (("cpu", "CPU"), ("memory", "Memory")):
        figures = [each for each in loads.figures.get(node.name, ()) if each.type == kind]
        if not figures:
            continue
        means = [each.percent for each in figures if each.operator == "AVG"]
        samples = [each.percent for each in figures if each.operator in ("Latest", "")]
        deviations = [each.percent for each in figures if each.operator == "STD"]
        there = node.allocatable[name]
        used = min(max((means or samples or [0])[-1] * there / 100, 0), there)
        spread = min(max((deviations or [0])[-1] * there / 100, 0), there) / there
        mean = min((used + pod.spec.requests.get(name, 0)) / there, 1)
        risk = (mean + min(margin * spread ** (1 / sensitivity), 1)) / 2
        scores.append((1 - risk) * 100)
    return whole(min(scores)) if scores else 0
