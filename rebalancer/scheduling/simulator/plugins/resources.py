"""The plugins that look at what nodes have left: resources, pod slots and ports.

Source of NodeResourcesFit: the Kubernetes documentation, Resource Management; Resource Bin Packing (strategies
LeastAllocated, MostAllocated, RequestedToCapacityRatio).  Scores of cpu and memory count containers that request
nothing with 100m and 200Mi each; other resources count as requested, and only for pods that request them.

Source of NodeResourcesBalancedAllocation: the Kubernetes documentation, scheduling plugins.  For each node:

1. The share of each resource that is requested, with the pod.
2. Evenness: 100 less the standard deviation of the shares in percent.  Up to 1.35 this is the score.
3. Since 1.36 (kubernetes/kubernetes#135573) the score is 50 plus half of: 50, plus evenness with the pod, less evenness
   without it.  So a pod that changes nothing scores 75.

Example: shares of cpu and memory are 25 % and 50 %, evenness 87 (rounded down).  With a pod that raises cpu to 50 %,
evenness is 100: the score is 100 up to 1.35, and 50 + 63 // 2 = 81 since 1.36.  Since 1.33 (#130260) the plugin does
not score pods that request none of the resources.

Source of NodePorts: the Kubernetes documentation, `hostPort` of a container.  The address 0.0.0.0 stands for every
address of the node.  Ports of restartable init containers count since 1.34 (kubernetes/kubernetes#132040).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from operator import add, or_
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.pod import HostPort, Int32, Pod, PodSpec
from rebalancer.cluster.resources import CPU, MEMORY, PODS, Resources
from rebalancer.scheduling.equivalence import BySpec
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Mask, Nodes, Refusals, rounded
from rebalancer.scheduling.simulator.state import Shapes, State, counted, scored_of

_SHORT = {PODS: "Too many pods", CPU: "Insufficient cpu", MEMORY: "Insufficient memory"}
_NATIVE = (CPU, MEMORY, "ephemeral-storage")
_EVEN: Mapping[str, int] = {CPU: 1, MEMORY: 1}

#: Points of a shape: utilization in percent, and the score there from 0 to 10.
_Shape = Sequence[tuple[int, int]]
_SCORES_PER_POINT = 10


class Column(NamedTuple):
    """One resource: what is requested with the pod and what is offered, node by node, and how much it counts."""

    asked: ByNode
    offered: ByNode
    weight: int


#: Scores nodes by the columns of the resources; a resource that a node does not offer does not count there.
Scorer = Callable[[Sequence[Column]], ByNode]


#: What counts of a resource that a node offers, by strategy: what is left, or what is requested.
_COUNTING: Mapping[str, Callable[[ByNode, ByNode], ByNode]] = {
    "LeastAllocated": lambda asked, offered: np.maximum(offered - asked, 0),
    "MostAllocated": np.minimum,
}


def _means(counting: Callable[[ByNode, ByNode], ByNode], columns: Sequence[Column]) -> ByNode:
    """Return the weighted means of the shares, in percent, that count of what is offered; 0 where nothing is."""
    totals, weights = [], []
    for asked, offered, weight in columns:
        totals.append(weight * (counting(asked, offered) * WHOLE // np.maximum(offered, 1)))
        weights.append(weight * (offered > 0))
    found: ByNode = reduce(add, totals) // np.maximum(reduce(add, weights), 1)
    return found


def requested_to_capacity_ratio(shape: _Shape) -> Scorer:
    """Return the strategy that reads scores off a shape; resources that score 0 are left out of the mean."""
    points = [(utilization, score * _SCORES_PER_POINT) for utilization, score in shape]
    by_percent = np.array([_on_line(points, utilization) for utilization in range(WHOLE + 1)], dtype=np.int64)

    def score(columns: Sequence[Column]) -> ByNode:
        totals, weights = [], []
        for asked, offered, weight in columns:
            percent = np.where(asked > offered, WHOLE, asked * WHOLE // np.maximum(offered, 1))
            found = by_percent[percent] * (offered > 0)
            totals.append(weight * found)
            weights.append(weight * (found > 0))
        return rounded(reduce(add, totals) / np.maximum(reduce(add, weights), 1))

    return score


def _on_line(shape: _Shape, utilization: int) -> int:
    """Return the score of a utilization; between two points it is cut off towards zero."""
    before = shape[0]
    for at, score in shape:
        if utilization <= at:
            if at == before[0]:
                return score
            return before[1] + int((score - before[1]) * (utilization - before[0]) / (at - before[0]))
        before = (at, score)
    return before[1]


class _Resource(msgspec.Struct, frozen=True):
    name: str
    weight: Int32 = 1


def _weights(resources: Sequence[_Resource]) -> Mapping[str, int]:
    return {each.name: each.weight or 1 for each in resources} or _EVEN


class _Point(msgspec.Struct, frozen=True):
    utilization: Int32
    score: Int32


class _Ratio(msgspec.Struct, frozen=True):
    shape: tuple[_Point, ...] = ()


class _Strategy(msgspec.Struct, rename="camel", frozen=True):
    type: str = "LeastAllocated"
    resources: tuple[_Resource, ...] = ()
    requested_to_capacity_ratio: _Ratio = _Ratio()


class FitArgs(msgspec.Struct, rename="camel", frozen=True):
    """How nodes are scored, and which extended resources are ignored where room counts."""

    scoring_strategy: _Strategy = _Strategy()
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.scorer()

    def scorer(self) -> Scorer:
        """Return the strategy.

        Raises:
            ValueError: it is not known, or has no shape.
        """
        kind, shape = self.scoring_strategy.type, self.scoring_strategy.requested_to_capacity_ratio.shape
        if kind in _COUNTING:
            return partial(_means, _COUNTING[kind])
        if kind != "RequestedToCapacityRatio":
            known = f"{', '.join(_COUNTING)} or RequestedToCapacityRatio"
            raise ValueError(f"unknown scoring strategy {kind!r}: {known}")
        if not shape:
            raise ValueError("RequestedToCapacityRatio needs a shape")
        return requested_to_capacity_ratio([(each.utilization, each.score) for each in shape])

    def ignores(self, name: str) -> bool:
        """Return whether a resource does not count."""
        group, slash, _ = name.partition("/")
        return name in self.ignored_resources or (bool(slash) and group in self.ignored_resource_groups)


def _scored(names: Iterable[str], spec: PodSpec, amounts: Resources) -> Resources:
    """Return the resources by which nodes are scored for a pod, and how much of them it takes."""
    return {name: counted(amounts.get(name, 0)) for name in names if name in _NATIVE or spec.requests.get(name)}


class NodeResourcesFit:
    """Refuses full nodes, and scores the others."""

    name = "NodeResourcesFit"
    Args = FitArgs

    def __init__(self, state: State, args: FitArgs) -> None:
        self._state = state
        self._args = args
        self._scorer = args.scorer()
        self._weights = _weights(args.scoring_strategy.resources)
        self._asked = BySpec(self._requests)
        self._scored = BySpec(self._amounts)
        self._short = Shapes(state, self._is_short)
        self._scores = Shapes(state, self._score)

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes without room, and which requests do not fit."""
        short = self._short.by_node(pod)
        return Refusals(short.copy(), lambda index: self._lacking(pod, index)) if short.any() else None

    def _is_short(self, pod: Pod, nodes: Nodes) -> Mask:
        rooms = ((amount, self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        short: Mask = reduce(or_, [amount > nodes.of(offered) - nodes.of(taken) for amount, (offered, taken) in rooms])
        return short

    def _lacking(self, pod: Pod, index: int) -> tuple[str, ...]:
        rooms = ((name, amount, *self._state.room(name)) for name, amount in self._asked.of(pod.spec))
        lacking = (name for name, amount, offered, taken in rooms if amount > offered[index] - taken[index])
        return tuple(_SHORT.get(name) or f"Insufficient {name}" for name in lacking)

    def _requests(self, spec: PodSpec) -> list[tuple[str, int]]:
        asked = ((PODS, 1), *spec.requests.items())
        return [(name, counted(amount)) for name, amount in asked if amount > 0 and not self._args.ignores(name)]

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the strategy's score of each node with the pod on it."""
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        columns = [self._column(name, more, nodes) for name, more in self._scored.of(pod.spec)]
        return self._scorer(columns) if columns else np.zeros(len(nodes), dtype=np.int64)

    def _amounts(self, spec: PodSpec) -> list[tuple[str, int]]:
        return [*_scored(self._weights, spec, {**spec.requests, **scored_of(spec)}).items()]

    def _column(self, name: str, more: int, nodes: Nodes) -> Column:
        offered, taken = self._state.room(name)
        taken = self._state.assumed.get(name, taken)
        return Column(nodes.of(taken) + more, nodes.of(offered), self._weights[name])


_SITS_OUT = 33
_BY_CHANGE = 36
_HALF = 50
_TWO = 2


class BalanceArgs(msgspec.Struct, frozen=True):
    """The resources whose shares are to be even."""

    resources: tuple[_Resource, ...] = ()


class NodeResourcesBalancedAllocation:
    """Scores nodes by how even their shares are."""

    name = "NodeResourcesBalancedAllocation"
    Args = BalanceArgs

    def __init__(self, state: State, args: BalanceArgs) -> None:
        self._state = state
        self._resources = tuple(_weights(args.resources))
        self._amounts = BySpec(self._requests)
        offered = ((name, state.room(name)[0]) for name in self._resources)
        self._offered = {name: np.where(each > 0, each, np.nan) for name, each in offered}
        self._scores = Shapes(state, self._score)
        # Evenness without the pod is the same for all pods that are scored by the same resources.
        self._before = Shapes(state, self._evenness_before, lambda pod: tuple(self._amounts.of(pod.spec)))

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return how even the shares are with the pod, or, since 1.36, how much more even they become."""
        if self._state.minor >= _SITS_OUT and not any(pod.spec.requests.get(name) for name in self._resources):
            return None
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        after = self._evenness(self._amounts.of(pod.spec), nodes)
        if self._state.minor < _BY_CHANGE:
            return after
        return _HALF + (_HALF + after - nodes.of(self._before.by_node(pod))) // _TWO

    def _requests(self, spec: PodSpec) -> Resources:
        return _scored(self._resources, spec, spec.requests)

    def _evenness_before(self, pod: Pod, nodes: Nodes) -> ByNode:
        return self._evenness(dict.fromkeys(self._amounts.of(pod.spec), 0), nodes)

    def _evenness(self, more: Resources, nodes: Nodes) -> ByNode:
        """Return 100 less the standard deviation of the shares in percent, node by node.

        In floating point, as the scheduler does; a resource that a node does not offer does not count there.
        """
        if not more:
            return np.full(len(nodes), WHOLE, dtype=np.int64)
        shares = [self._shares(name, amount, nodes) for name, amount in more.items()]
        if len(shares) == _TWO:  # as a rule; a node that offers only one of them is even
            deviations = np.fmax(abs(shares[0] - shares[1]) / _TWO, 0.0)
        else:
            deviations = _deviations(np.array(shares))
        evenness: ByNode = ((1 - deviations) * WHOLE).astype(np.int64)
        return evenness

    def _shares(self, name: str, more: int, nodes: Nodes) -> NDArray[np.float64]:
        """Return the share of a resource that is requested, node by node; NaN where the node does not offer it."""
        _, taken = self._state.room(name)
        shares: NDArray[np.float64] = np.minimum((nodes.of(taken) + more) / nodes.of(self._offered[name]), 1.0)
        return shares


def _deviations(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of the shares that each node (column) has; of two it is half their distance."""
    there = ~np.isnan(shares)
    number = there.sum(axis=0)
    known = np.where(there, shares, 0.0)
    span = known.max(axis=0) - np.where(there, shares, 1.0).min(axis=0)
    means = reduce(add, known) / np.maximum(number, 1)
    squares = reduce(add, (known - means) * (known - means) * there)
    deviations: NDArray[np.float64] = np.where(number == _TWO, span / _TWO, np.sqrt(squares / np.maximum(number, 1)))
    return deviations


class PodCapacityOfNode:
    """Scores nodes by the share of free pod slots in percent; not part of Kubernetes, but of custom schedulers."""

    name = "PodCapacityOfNode"

    def __init__(self, state: State) -> None:
        self._state = state

    def scores(self, _pod: Pod, nodes: Nodes) -> ByNode:
        """Return the shares, rounded down: 21, 17 and 25 of 110 pods score 80, 84 and 77."""
        offered, taken = map(nodes.of, self._state.room(PODS))
        scores: ByNode = np.maximum(offered - taken, 0) * WHOLE // np.maximum(offered, 1)
        return scores


_ANY = "0.0.0.0"  # noqa: S104  compared, not listened on


class NodePorts:
    """Refuses nodes on which a port is taken."""

    name = "NodePorts"

    def __init__(self, state: State) -> None:
        self._state = state

    def refusals(self, pod: Pod, nodes: Nodes) -> Refusals | None:
        """Return the nodes where a port that the pod wants is taken."""
        wanted = self._state.ports_of(pod)
        reason = ("node(s) didn't have free ports for the requested pod ports",)
        taken = {index: reason for index in nodes if self._taken(wanted, index)} if wanted else {}
        return Refusals.of(taken, len(self._state.nodes))

    def _taken(self, wanted: Sequence[HostPort], index: int) -> bool:
        return conflict(wanted, (port for port, count in self._state.ports_on.of(index).items() if count))


def ports(pod: Pod) -> Sequence[HostPort]:
    """Return the ports of its node that a pod takes."""
    return (*pod.spec.placement.host_ports, *pod.spec.placement.sidecar_ports)


def conflict(some: Iterable[HostPort], others: Iterable[HostPort]) -> bool:
    """Return whether some of these ports is the same as one of the others on some address."""
    addresses = defaultdict[tuple[int, str], set[str]](set)
    for each in others:
        addresses[each.port, each.protocol].add(each.address)
    return any(
        (there := addresses.get((each.port, each.protocol)))
        and (each.address in there or _ANY in there or each.address == _ANY)
        for each in some
    )
