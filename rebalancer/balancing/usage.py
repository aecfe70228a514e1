"""What nodes and pods use, requested or measured: as the descheduler counts it (`Usage`), and as relief needs it.

Relief needs to know what really is above target, and what does not show yet (`MeasuredUsage`).  A figure over a time
window stays high after pods have left, and low after pods have come.  So as a source a node counts with the lower of
two figures: that of the window, and what its present pods use plus what no pod accounts for.  As a destination it is
charged with the pods that came too late to show in the figure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil
from statistics import median_low

from rebalancer.balancing.utilization import NONE, NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import ComingLoad, Course, Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CONTENTION, CPU, MEMORY, METRIC_RESOURCE, PODS, Resources, add, arriving
from rebalancer.errors import StrategyError
from rebalancer.eviction.causes import Code
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.policy.usage import UtilizationArgs

#: Returns what one pod uses, or None if that is not known.
OfPod = Callable[[Pod], Resources | None]


@dataclass(frozen=True, slots=True)
class Usage:
    """What nodes and pods use of the tracked resources, from any source."""

    # By name of the node; the same resources for each.  A node that is missing is left out of everything.
    nodes: Mapping[str, Resources]
    of_pod: OfPod | None = None  # None if the source knows nothing of single pods
    peaks: Mapping[str, Resources] | None = None  # like `nodes`, what they may use at times; None if that is the same

    def sources(self, cluster: Cluster) -> list[NodeUtilization]:
        """Return the nodes whose usage is known, by name; it falls as pods leave the cluster, in the present scope."""
        nodes = _utilizations(cluster, self.nodes)
        if self.of_pod is not None:
            cluster.follow(FollowedUsage(nodes, self.of_pod))
        return nodes

    def destinations(self, cluster: Cluster) -> list[NodeUtilization]:
        """Return the same nodes as they are at their peaks."""
        return _utilizations(cluster, self.nodes if self.peaks is None else self.peaks)


class FollowedUsage:
    """Lowers what nodes use as pods leave the cluster, and raises it where they are expected; or does one of both."""

    def __init__(
        self, nodes: Iterable[NodeUtilization], of_pod: OfPod, *, falls: bool = True, rises: bool = False
    ) -> None:
        self._nodes = {each.node.name: each for each in nodes}
        self._of_pod = of_pod
        self._falls, self._rises = falls, rises

    def left(self, pod: Pod, sign: int) -> None:
        """Count the usage of a pod that went, or is back."""
        node = self._nodes.get(pod.node)
        if self._falls and node is not None and pod.active:
            node.charge(self._of_pod(pod) or {}, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count the usage of a pod that is expected on a node, or is not any more."""
        if self._rises and node.name in self._nodes:
            self._nodes[node.name].charge(arriving(self._of_pod(pod) or {}), sign)


def usage_for(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Usage:
    """Return what nodes and pods use: measured if the arguments say so, else requested; may raise StrategyError."""
    if args.metrics_utilization is None:
        return requested(cluster, args.thresholds)
    return measured(cluster, figures_for(args, cluster, evict), args.thresholds)


def figures_for(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> Measured:
    """Return the figures of the source that the arguments name; its warnings go into the report."""
    figures = cluster.measure(args.metrics_utilization)
    for text in figures.warnings:
        evict.warn(text)
    return figures


def requested(cluster: Cluster, names: Iterable[str]) -> Usage:
    """Return the usage as active pods request it: cpu, memory, the number of pods, and the resources named."""
    tracked = tuple(dict.fromkeys((CPU, MEMORY, PODS, *sorted(names))))
    used = {node.name: cluster.used(node) for node in cluster.nodes}
    nodes = {node: {name: amounts.get(name, 0) for name in tracked} for node, amounts in used.items()}
    return Usage(nodes, lambda pod: {**pod.spec.requests, PODS: 1})


def measured(cluster: Cluster, figures: Measured, names: Iterable[str]) -> Usage:
    """Return the usage as it was measured, with the number of active pods as it is."""
    check_measured(figures, names)
    known = frozenset(next(iter(figures.nodes.values()), {}))
    counts = {node.name: {PODS: cluster.used(node).get(PODS, 0)} for node in cluster.nodes}
    counted = known != {METRIC_RESOURCE}

    def whole(amounts: Mapping[str, Resources]) -> dict[str, Resources]:
        return {name: {**each, **counts[name]} if counted else each for name, each in amounts.items()}

    def of_pod(pod: Pod) -> Resources | None:
        amounts = (figures.pods or {}).get(pod.key, {})
        return {**amounts, PODS: 1} if known <= amounts.keys() else None

    return Usage(whole(figures.nodes), None if figures.pods is None else of_pod, whole(figures.peaks))


def check_measured(figures: Measured, names: Iterable[str]) -> None:
    """Check that a source measures the resources named; where no node was measured there is nothing to check."""
    known = next(iter(figures.nodes.values()), {})
    if unknown := [name for name in sorted(names) if figures.nodes and name not in {*known, PODS}]:
        raise StrategyError(f"thresholds name {', '.join(unknown)}, which this source does not measure")


def _utilizations(cluster: Cluster, amounts: Mapping[str, Resources]) -> list[NodeUtilization]:
    return [NodeUtilization(node, amounts[node.name]) for node in cluster.nodes if node.name in amounts]


#: To decide which pods the figures show, a window counts as at least this long.
_SHORTEST = timedelta(minutes=5)


class MeasuredUsage:
    """The figures of one source for the nodes of a cycle."""

    def __init__(self, cluster: Cluster, measured: Measured, names: Iterable[str], *, requested: bool = False) -> None:
        """Take the figures of the resources named; if they are what pods request, a pod of zero is one like others."""
        check_measured(measured, names)
        self._cluster = cluster
        self._pod_nodes = {pod.key: pod.node for pod in cluster.snapshot.pods}
        self._measured = measured = self._with_contention(measured)
        self._requests_count = requested
        self._names = tuple(sorted(names))
        self._known = tuple(sorted(next(iter(measured.nodes.values()), ())))
        self.pods_known = measured.pods is not None  # whether the source knows anything of pods
        # Whether the figures of nodes and pods tell of one moment, and not of a time window.
        self.of_one_moment = self.pods_known and not measured.window
        self._youth = max(measured.window, _SHORTEST)
        self._seen = self._pods_by_node()
        self._of_pods: dict[Pod, Resources] = {}
        # By node, how far its pool's mean is from the mean of all nodes (see `rebalancer.balancing.utilization`).
        self.offsets: Mapping[str, Percentages] = {}

    def nodes(self, names: Collection[str] | None = None) -> list[NodeUtilization]:
        """Return what nodes with a fresh sample (all, or those named) use as measured, in the order of names."""
        return [
            self._utilization(node, self._measured.nodes[node.name], self._names)
            for node in self._cluster.nodes
            if node.name in self._measured.nodes and (names is None or node.name in names)
        ]

    def sources(self, names: Collection[str] | None = None, *, rises: bool = False) -> list[NodeUtilization]:
        """Return the same nodes as sources; what they use falls as pods leave the cluster, in the present scope.

        For example, 80 % was measured over a window, and pods that used 30 % have left: the node counts with 50 %.
        """
        sources = [self._as_source(node) for node in self.nodes(names)]
        if self.pods_known:
            self._cluster.follow(FollowedUsage(sources, self.of_pod, rises=rises))
        return sources

    def destination(self, node: Node) -> NodeUtilization:
        """Return a node's peak usage of all that is measured, plus the pods that the figures do not show yet."""
        amounts = self._measured.peaks[node.name]
        names = sorted({*self._names, *self._known})
        peak = self._utilization(node, amounts, names)
        for pod in self._cluster.active_pods_on(node):
            # The figures of its node do not show the pod, or not in full.
            if self._young(pod) and (self._measured.window or (self.pods_known and self._usage(pod) is None)):
                peak.charge({name: amount for name, amount in self.of_pod(pod).items() if name != PODS})
        return peak

    def falling(self, node: NodeUtilization, targets: Percentages) -> Refused | None:
        """Return a refusal if a node over its targets falls below them by itself within the hour."""
        found = falls(node, targets, self._measured.coming) if self._measured.coming else None
        if found is None:
            return None
        after, days, of = found
        at = (self._cluster.now + after).strftime("%H:%M")
        return refused(Code.FALLS_BY_ITSELF, node=node.node.name, at=at, days=days, of=of)

    def of_pod(self, pod: Pod) -> Resources:
        """Return what a pod uses, or what it requests if its usage is not known."""
        known = self._of_pods.get(pod)
        if known is None:
            amounts = self._usage(pod)
            if amounts is None:
                amounts = {name: self._requested(pod, name) for name in self._known}
            known = self._of_pods[pod] = {**amounts, PODS: 1}
        return known

    def largest_first(self, node: Node, pods: Iterable[Pod]) -> list[Pod]:
        """Return pods by how much of their node they use, the largest, which is the hardest to place, first."""
        return sorted(pods, key=lambda pod: (-NodeUtilization(node, self.of_pod(pod)).fullness, *pod.age_order))

    def too_young(self, pod: Pod) -> Refused | None:
        """Return a refusal if the figures cover more time than the pod has run."""
        if not self._measured.window or not self._young(pod):
            return None
        age, window = self._age(pod).total_seconds(), self._youth.total_seconds()
        return refused(Code.YOUNGER_THAN_WINDOW, age_seconds=age, window_seconds=window)

    def unknown(self, pod: Pod) -> Refused | None:
        """Return a refusal if the source measures pods, but not this one, or found that it uses nothing.

        Where the number of pods counts, every pod uses something: its place.
        """
        if not self.pods_known or self._requests_count:
            return None
        amounts = self._usage(pod)
        missing = [name for name in self._names if name != PODS and name not in (amounts or {})]
        if amounts is None or missing:
            return refused(Code.NO_USAGE, resources=[*(missing or self._known)])
        return None if PODS in self._names or any(amounts.values()) else refused(Code.NO_USAGE, used=0)

    def _as_source(self, node: NodeUtilization) -> NodeUtilization:
        # A terminating pod is about to leave: it does not count as present.
        present = [pod for pod in self._cluster.active_pods_on(node.node) if not pod.terminating]
        lower = {name: min(used, self._present(name, used, node.node, present)) for name, used in node.used.items()}
        return NodeUtilization(node.node, lower, node.offset)

    def _utilization(self, node: Node, amounts: Resources, names: Iterable[str]) -> NodeUtilization:
        used = {name: self._cluster.used(node).get(PODS, 0) if name == PODS else amounts[name] for name in names}
        return NodeUtilization(node, used, self.offsets.get(node.name, NONE))

    def _present(self, name: str, used: int, node: Node, present: list[Pod]) -> int:
        if name == PODS:
            return len(present)
        if not self.pods_known:
            return used
        rest = max(0, used - self._seen.get(node.name, {}).get(name, 0))
        return rest + sum((self._usage(pod) or {}).get(name, 0) for pod in present)

    def _usage(self, pod: Pod) -> Resources | None:
        """Return what the pod was measured to use; None if it was not, or if a pod of its name was, on another node."""
        measured = self._measured
        if measured.pod_nodes.get(pod.key, pod.node) != pod.node:
            return None
        return (measured.pods or {}).get(pod.key)

    def _with_contention(self, measured: Measured) -> Measured:
        """Return figures in which each pod has its part in the contention of its node: that of the cpu it uses.

        For example, tasks of a node wait for 30 % of the time, and of 8 cores in use a pod uses 2: its part is 7.5 %.
        """
        nodes = {name: each for name, each in measured.nodes.items() if each.get(CONTENTION) and each.get(CPU)}
        if measured.pods is None or not any(CONTENTION in each for each in measured.nodes.values()):
            return measured

        def part(key: tuple[str, str], cpu: int) -> int:
            on = nodes.get(measured.pod_nodes.get(key) or self._pod_nodes.get(key, ""))
            return round(on[CONTENTION] * min(1.0, cpu / on[CPU])) if on else 0

        pods = {key: {**each, CONTENTION: part(key, each.get(CPU, 0))} for key, each in measured.pods.items()}
        return replace(measured, pods=pods)

    def _pods_by_node(self) -> dict[str, dict[str, int]]:
        sums: dict[str, dict[str, int]] = {}
        for key, amounts in (self._measured.pods or {}).items():
            if node := self._measured.pod_nodes.get(key) or self._pod_nodes.get(key):
                add(sums.setdefault(node, {}), amounts)
        return sums

    def _young(self, pod: Pod) -> bool:
        return self._age(pod) < self._youth

    def _age(self, pod: Pod) -> timedelta:
        return self._cluster.now - (pod.started or pod.created)

    def _requested(self, pod: Pod, name: str) -> int:
        if name != METRIC_RESOURCE:
            return pod.spec.requests.get(name, 0)
        node = self._cluster.node(pod.node)
        offered = (node.allocatable or node.capacity) if node else {}
        shares = [pod.spec.requests.get(each, 0) / offered[each] for each in (CPU, MEMORY) if offered.get(each)]
        return ceil(max(shares, default=0.0) * 100)


_HOUR = 3600
_FEWEST_DAYS = 3
_STEP = 300


def falls(node: NodeUtilization, targets: Percentages, coming: ComingLoad) -> tuple[timedelta, int, int] | None:
    """Return in what time a node falls below its targets by itself, on how many of how many days; None if not.

    A day counts if it has values for every resource that is above its target now.  Three such days are needed, or all
    that were asked about, and the node has to have fallen on more than half of them.  For example, it is 17:30, and on
    5 of the last 7 days n4 was above 60 % of its cpu at 17:30, and below it from 18:00 on: it falls in half an hour.
    """
    over = node.above(targets).points
    by_resource = {name: coming.courses.get(name, {}).get(node.node.name, ()) for name in over}
    known = [list(days) for days in zip(*by_resource.values(), strict=False) if all(days)]
    bounds = {name: node.cap(name, targets) for name in over}
    counted = [_day(dict(zip(by_resource, day, strict=True)), bounds) for day in known]
    fell = [when for when in counted if when is not None]
    if len(counted) < min(_FEWEST_DAYS, coming.days) or 2 * len(fell) <= len(counted):
        return None
    return timedelta(seconds=median_low(fell)), len(fell), len(counted)


def _day(courses: Mapping[str, Course], bounds: Mapping[str, int]) -> int | None:
    """Return after how many seconds a node fell on one day; None if it did not.

    It was above a target at some time from an hour before on, and within all of them at the end of the hour to come.
    """
    points = ((ahead, used > bounds[name]) for name, course in courses.items() for ahead, used in course.items())
    over = sorted({ahead for ahead, is_above in points if is_above})
    before = [ahead for ahead in over if ahead <= _HOUR]
    times = [ahead for course in courses.values() for ahead in course if 0 <= ahead <= _HOUR]
    if not before or not times or before[-1] >= max(times):
        return None
    return max(0, before[-1] + _STEP)


def measured_usage_for(args: UtilizationArgs, cluster: Cluster, evict: Evict) -> MeasuredUsage:
    """Return measured usage as relief needs it; what pods request stands in if the arguments name no source."""
    if args.metrics_utilization is None:
        figures = _requested_figures(cluster, args.thresholds)
        return MeasuredUsage(cluster, figures, args.thresholds, requested=True)
    return MeasuredUsage(cluster, figures_for(args, cluster, evict), args.thresholds)


def _requested_figures(cluster: Cluster, names: Iterable[str]) -> Measured:
    tracked = sorted({CPU, MEMORY, *names} - {PODS})
    nodes = {node.name: {name: cluster.used(node).get(name, 0) for name in tracked} for node in cluster.nodes}
    active = (pod for pod in cluster.pods() if pod.active)
    pods = {pod.key: {name: pod.spec.requests.get(name, 0) for name in tracked} for pod in active}
    return Measured(nodes, nodes, pods)
