"""How full nodes are: usage against capacity, thresholds, and the room that destinations have left.

What stands here sees numbers and never their source: a `Usage` may come from requests or from measurements.

Source of the rules: the reference's LowNodeUtilization and HighNodeUtilization.  Percentages are floats, worked out as
used / capacity * 100; caps are whole units, cut off after (target * 0.01) * capacity.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, METRIC_RESOURCE, PODS, Resources, describe
from rebalancer.cluster.taints import Taint, Toleration, untolerated
from rebalancer.errors import StrategyError

_WHOLE = 100
_MOST_DECIMALS = 6

Percentages = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Usage:
    """What nodes and pods use of the tracked resources, whatever the source.

    Attributes:
        nodes: by name of the node; the same resources for each.  A node that is missing is left out of everything.
        of_pod: what one pod uses, or None if that is not known; the attribute is None if the source knows nothing of
            single pods.
        peaks: like `nodes`, what they may use at times; None if that is the same.
    """

    nodes: Mapping[str, Resources]
    of_pod: Callable[[Pod], Resources | None] | None = None
    peaks: Mapping[str, Resources] | None = None

    @property
    def at_peak(self) -> "Usage":
        """The usage that counts for nodes as destinations."""
        return self if self.peaks is None else Usage(self.peaks, self.of_pod)


def requested(cluster: Cluster, names: Iterable[str]) -> Usage:
    """Return the usage as active pods request it: cpu, memory, the number of pods, and the resources named."""
    tracked = tuple(dict.fromkeys((CPU, MEMORY, PODS, *sorted(names))))
    used = {node.name: cluster.used(node) for node in cluster.nodes}
    nodes = {node: {name: amounts.get(name, 0) for name in tracked} for node, amounts in used.items()}
    return Usage(nodes, lambda pod: {**pod.spec.requests, PODS: 1})


def measured(cluster: Cluster, figures: Measured, names: Iterable[str]) -> Usage:
    """Return the usage as it was measured, with the number of active pods as it is.

    Raises:
        StrategyError: the source does not measure a resource that is named.
    """
    known = frozenset(next(iter(figures.nodes.values()), {}))
    unknown = sorted(set(names) - known - {PODS}) if figures.nodes else []
    if unknown:
        raise StrategyError(f"thresholds name {', '.join(unknown)}, which this source does not measure")
    counts = {node.name: {PODS: cluster.used(node).get(PODS, 0)} for node in cluster.nodes}
    counted = known != {METRIC_RESOURCE}

    def whole(amounts: Mapping[str, Resources]) -> dict[str, Resources]:
        return {name: {**each, **counts[name]} if counted else each for name, each in amounts.items()}

    def of_pod(pod: Pod) -> Resources | None:
        amounts = (figures.pods or {}).get(pod.key, {})
        return {**amounts, PODS: 1} if known <= amounts.keys() else None

    return Usage(whole(figures.nodes), None if figures.pods is None else of_pod, whole(figures.peaks))


class NodeLoad:
    """What one node uses, and what it offers; `release` lowers the former as pods go.

    Attributes:
        used: by tracked resource.
    """

    def __init__(self, node: Node, used: Resources) -> None:
        self.node = node
        self.used = dict(used)
        self._offered: Resources = {**(node.allocatable or node.capacity), METRIC_RESOURCE: _WHOLE}

    @property
    def total(self) -> int:
        """The reference's raw load: millicores, bytes and counts all added up, so that memory decides."""
        return sum(self.used.values())

    def percent(self, name: str) -> float | None:
        """Return how much of its capacity the node uses; None if it does not offer the resource, 0 if it has none."""
        capacity = self._offered.get(name)
        if capacity is None or name not in self.used:
            return None
        return self.used[name] / capacity * 100 if capacity else 0.0

    def within(self, thresholds: Percentages) -> bool:
        """Tell whether no resource is above its threshold; one that the node does not offer counts as unused."""
        return all((self.percent(name) or 0) <= bound for name, bound in thresholds.items())

    def exceeds(self, targets: Percentages) -> bool:
        """Tell whether some resource is above its target."""
        return not self.within(targets)

    def cap(self, name: str, targets: Percentages) -> int:
        """Return how much the node may use in whole units; without a target, all it has."""
        capacity = self._offered.get(name, 0)
        return int((targets[name] * 0.01) * capacity) if name in targets else capacity

    def room(self, targets: Percentages) -> dict[str, int]:
        """Return what is left up to the caps by tracked resource; negative where they are passed."""
        return {name: self.cap(name, targets) - used for name, used in self.used.items()}

    def release(self, amounts: Resources) -> None:
        """Count the usage of a pod that goes."""
        for name in self.used:
            self.used[name] -= amounts.get(name, 0)

    def excess(self, targets: Percentages) -> str:
        """Return what is above its cap in words, like `cpu 83 % > 50 %`; empty if nothing is.

        All tracked resources count: those without a target may be used up to the node's whole capacity.
        """
        over = (name for name, left in self.room(targets).items() if left < 0)
        return ", ".join(self._above(name, targets) for name in over)

    def slack(self, thresholds: Percentages) -> str:
        """Return what is not above its threshold in words, like `cpu 12 % <= 20 %`."""
        return ", ".join(
            compared(name, self.percent(name) or 0, "<=", bound) for name, bound in sorted(thresholds.items())
        )

    def _above(self, name: str, targets: Percentages) -> str:
        percent, bound = self.percent(name), targets.get(name, 100.0)
        if percent is not None and percent > bound:
            return compared(name, percent, ">", bound)
        return f"{name} {describe(name, self.used[name])} > {describe(name, self.cap(name, targets))}"


def compared(name: str, value: float, sign: str, bound: float) -> str:
    """Return a comparison of percentages with as few decimals as keep unequal ones apart: `cpu 83 % > 50 %`."""
    for decimals in range(1, _MOST_DECIMALS + 1):
        left, right = (f"{each:.{decimals}f}".rstrip("0").rstrip(".") for each in (value, bound))
        if left != right:
            break
    return f"{name} {left} % {sign} {right} %"


def node_loads(cluster: Cluster, usage: Usage) -> list[NodeLoad]:
    """Return the loads of the nodes whose usage is known, by name."""
    return [NodeLoad(node, usage.nodes[node.name]) for node in cluster.nodes if node.name in usage.nodes]


def means(loads: Iterable[NodeLoad], names: Iterable[str]) -> Percentages:
    """Return the mean percentage of each resource over the nodes that offer it; one that no node offers has none."""
    known = list(loads)
    percents = {name: [p for load in known if (p := load.percent(name)) is not None] for name in names}
    return {name: fmean(each) for name, each in percents.items() if each}


def around_mean(loads: Iterable[NodeLoad], below: Percentages, above: Percentages) -> tuple[Percentages, Percentages]:
    """Return thresholds and targets as distances from the means, kept between 0 and 100."""
    centre = means(loads, below)
    return (
        {name: _clamped(mean - below[name]) for name, mean in centre.items()},
        {name: _clamped(mean + above[name]) for name, mean in centre.items()},
    )


def _clamped(percent: float) -> float:
    return min(max(percent, 0.0), 100.0)


class Room:
    """What all destinations together can still take, and which taints they have."""

    def __init__(self, destinations: Iterable[NodeLoad], targets: Percentages) -> None:
        self._left: dict[str, int] = {}
        self._taints: set[tuple[Taint, ...]] = set()
        self._tolerating: dict[tuple[Toleration, ...], bool] = {}
        for load in destinations:
            self._taints.add(load.node.taints)
            for name, left in load.room(targets).items():
                self._left[name] = self._left.get(name, 0) + left

    @property
    def spent(self) -> bool:
        """Whether some tracked resource has nothing left, whichever; then nothing more may come."""
        return any(left <= 0 for left in self._left.values())

    def take(self, amounts: Resources) -> None:
        """Count the usage of a pod that comes."""
        for name in self._left:
            self._left[name] -= amounts.get(name, 0)

    def tolerated_by(self, pod: Pod) -> bool:
        """Tell whether some destination's taints, of whatever effect, are all tolerated by the pod.

        As in the reference a pod needs at least as many tolerations as the node has taints.
        """
        held = pod.spec.tolerations
        known = self._tolerating.get(held)
        if known is None:
            known = self._tolerating[held] = any(_tolerated(taints, held) for taints in self._taints)
        return known


def _tolerated(taints: tuple[Taint, ...], held: tuple[Toleration, ...]) -> bool:
    return len(held) >= len(taints) and untolerated(held, taints, lambda _: True) is None
