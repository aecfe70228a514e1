"""What balancing measured, as the details of causes: how full nodes are and will be, and where pods land."""

from collections.abc import Iterable
from math import isfinite
from typing import Any

from rebalancer.balancing.utilization import NodeUtilization, Percentages, Points
from rebalancer.cluster.resources import Resources
from rebalancer.eviction.causes import Cause, Code, cause


def why_relieved(source: NodeUtilization, targets: Percentages, *, filling: bool) -> Cause:
    """Return why pods should leave a node: how far it is above its targets, or, while filling, above the mean.

    Details: `measured` lists the resources that are above, and `points` is the sum; a node below has none.
    """
    excess = source.above(targets)
    code = Code.ABOVE_MEAN if filling else Code.OVER_TARGET
    return cause(code, node=source.node.name, measured=_measured(source, excess.points, targets), points=excess.total)


def above_caps(source: NodeUtilization, targets: Percentages) -> Cause | None:
    """Return what is above its cap; None if nothing is.

    All tracked resources count: those without a target may be used up to the node's whole capacity.
    """
    over = [name for name, left in source.headroom(targets).items() if left < 0]
    measured = [_above_cap(source, name, targets) for name in over]
    return cause(Code.OVER_TARGET, node=source.node.name, measured=measured) if measured else None


def underutilized(source: NodeUtilization, thresholds: Percentages) -> Cause:
    """Return why a node is emptied: how full it is, and the thresholds that it does not exceed."""
    return cause(Code.UNDERUTILIZED, node=source.node.name, measured=_measured(source, sorted(thresholds), thresholds))


def with_pod_gone(why: Cause, points: Points) -> Cause:
    """Return a cause with what its node is expected to use `after` a pod of so many points has gone."""
    return why.with_details(measured=[_after(each, points) for each in why.details["measured"]])


def arrival(node: NodeUtilization, usage: Resources, names: Iterable[str]) -> dict[str, Any]:
    """Return the node where a pod is expected, and how full it is in these resources, before and after."""
    added = node.points(usage)
    return {"node": node.node.name, "filled": [_filled(node, name, added[name]) for name in names if added[name]]}


def _measured(source: NodeUtilization, names: Iterable[str], targets: Percentages) -> list[dict[str, Any]]:
    bounds = source.bounds(targets)
    return [{"resource": name, "before": source.percent(name) or 0.0, "target": bounds[name]} for name in names]


def _above_cap(source: NodeUtilization, name: str, targets: Percentages) -> dict[str, Any]:
    percent, bound = source.percent(name), targets.get(name, 100.0)
    shown = {"resource": name, "before": percent or 0.0, "target": bound}
    if percent is not None and percent > bound:
        return shown
    # Where the percentage does not show it, whole units do: a cap of 9.9 pods is a cap of 9.
    return {**shown, "used": source.used[name], "cap": source.cap(name, targets)}


def _after(measured: dict[str, Any], points: Points) -> dict[str, Any]:
    after = measured["before"] - points.get(measured["resource"], 0.0)
    return {**measured, "after": after if isfinite(after) else None}


def _filled(node: NodeUtilization, name: str, added: float) -> dict[str, Any]:
    after = node.percent(name) or 0.0
    before = after - added
    return {"resource": name, "before": before if isfinite(before) else None, "after": after}
