"""What balancing says in words: bounds that are passed or kept, and how full a node becomes."""

from collections.abc import Iterable

from rebalancer.balancing.excess import Excess
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.resources import Resources, describe

_MOST_DECIMALS = 6


def number_text(value: float) -> str:
    """Return a number with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def compared(name: str, value: float, sign: str, bound: float) -> str:
    """Return a comparison of percentages with as few decimals as keep unequal ones apart: `cpu 83 % > 50 %`."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        left, right = (f"{each:.{decimals}f}".rstrip("0").rstrip(".") for each in (value, bound))
        if left != right:
            break
    return f"{name} {left} % {sign} {right} %"


def above_caps(source: NodeUtilization, targets: Percentages) -> str:
    """Return what is above its cap, like `cpu 83 % > 50 %`; empty if nothing is.

    All tracked resources count: those without a target may be used up to the node's whole capacity.
    """
    over = (name for name, left in source.headroom(targets).items() if left < 0)
    return ", ".join(_above_cap(source, name, targets) for name in over)


def _above_cap(source: NodeUtilization, name: str, targets: Percentages) -> str:
    percent, bound = source.percent(name), targets.get(name, 100.0)
    if percent is not None and percent > bound:
        return compared(name, percent, ">", bound)
    return f"{name} {describe(name, source.used[name])} > {describe(name, source.cap(name, targets))}"


def not_above(source: NodeUtilization, thresholds: Percentages) -> str:
    """Return what is not above its threshold, like `cpu 12 % <= 20 %`."""
    return ", ".join(
        compared(name, source.percent(name) or 0, "<=", bound) for name, bound in sorted(thresholds.items())
    )


def why_relieved(source: NodeUtilization, targets: Percentages, *, filling: bool) -> str:
    """Return why pods should leave a node: how far it is above its targets, or that others are low."""
    excess = source.above(targets)
    if not excess.points:
        return f"{source.node.name} within its band, and others are low"
    above = ", ".join(compared(name, source.percent(name) or 0.0, ">", targets[name]) for name in excess.points)
    over = "above the mean, and others are low" if filling else "over"
    return f"{source.node.name} at {above}: {number_text(excess.total)} points {over}"


def relieved_by(excess: Excess, left: float | None) -> str:
    """Return what a pod does for its node; `left` is the excess that stays, None if nobody knows."""
    return "goes" if left is None or not excess.points else f"takes {number_text(excess.total - left)} of them"


def arrival(node: NodeUtilization, usage: Resources, names: Iterable[str]) -> str:
    """Return a node and how full it became with a pod, like `node-11 (cpu 20 % -> 27 %)`."""
    added = node.points(usage)
    rises = [_rise(name, node.percent(name) or 0.0, added[name]) for name in names if added[name]]
    return f"{node.node.name} ({', '.join(rises)})" if rises else node.node.name


def _rise(name: str, after: float, added: float) -> str:
    return f"{name} {number_text(after - added)} % -> {number_text(after)} %"


def passed_text(passed: tuple[str, float] | None) -> str:
    """Return which ceiling would be passed, empty if none (see `NodeUtilization.passed`)."""
    return f"{passed[0]} above {number_text(passed[1])} %" if passed else ""
