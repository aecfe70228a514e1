"""Trimaran's plugins, which score nodes by their real usage.

Source: the documentation of Trimaran in kubernetes-sigs/scheduler-plugins, and its plugins of 0.35 observed.  Values
that make no sense (a target of 0, a negative margin) stand for the default, as they do there.  The plugins read
load-watcher's figures by the exact name of the node, and know nothing of a node that has another name there.

LoadVariationRiskBalancing prefers nodes whose usage is low and steady.  For cpu and for memory:

1. The mean usage of the node by load-watcher, and what the pod requests, as shares.  load-watcher's percentages are
   shares of the node's capacity; the plugin takes them, like the request, for shares of what is allocatable.
2. The standard deviation, to the power of 1 / sensitivity, times the margin; at most 1.
3. The risk is half their sum.

The riskier of the two counts: the score is 100 * (1 - risk).  A resource without figures does not count; a node without
any scores 0.

Example: 30 % with a deviation of 10 %, and a pod that requests a fifth: risk (0.3 + 0.2 + 0.1) / 2 = 0.3, score 70.

TargetLoadPacking fills nodes up to a target of real cpu usage, and avoids them beyond it.  For each node, in percent of
its capacity:

1. What it uses, by load-watcher.  A node without such a figure scores 0.
2. What the pod will use: each container its limit, else its request times 1.5, else one core; and the overhead.
3. The same for pods there that are too young to be measured: bound less than a minute before the end of
   load-watcher's window, or after it.

The score rises from 40 at no use to 100 at the target of 40 %; beyond, it drops to 40 and falls to 0 at full use.

Example: 4 cores of which 10 % are used, and a pod with a request of 400m: 10 + 15 = 25 % score 60 * 25 / 40 + 40 = 78.
A pod with a limit of 1200m was bound there half a minute ago: 25 + 30 = 55 % score 40 * 45 / 60 = 30.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from math import inf
from typing import Any

import msgspec
import numpy as np

from rebalancer.cluster.measured import METRICS_SERVER, LoadFigure, LoadsWanted, NodeLoads
from rebalancer.cluster.pod import ContainerCpu, Pod
from rebalancer.cluster.resources import CPU, MEMORY, parse_milli_quantity
from rebalancer.errors import StrategyError
from rebalancer.scheduling.simulator.plugin import WHOLE, ByNode, Nodes, UnknownPlacementError, rounded
from rebalancer.scheduling.simulator.state import Shapes, State

_MEAN = "AVG"
_SAMPLE = "Latest"


class _Provider(msgspec.Struct, frozen=True):
    type: str = ""


class TrimaranArgs(msgspec.Struct, rename="camel", frozen=True):
    """Where a plugin gets its usage from."""

    watcher_address: str = ""
    metric_provider: _Provider = _Provider()

    @property
    def source(self) -> LoadsWanted:
        """The source in the form in which the cluster is asked for it."""
        return LoadsWanted("LoadWatcher" if self.watcher_address else self.metric_provider.type or METRICS_SERVER)


class ByLoad(ABC):
    """A plugin that scores nodes by their usage; one without figures scores 0."""

    name: str

    def __init__(self, state: State, args: Any, ask: Callable[[], NodeLoads] | None) -> None:
        self._state = state
        self._args = args
        self._ask = ask
        self._scores = Shapes(state, self._score, self._shape)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the scores."""
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        loads, shape = self._loads, self._shape(pod)
        if isinstance(loads, str):
            raise UnknownPlacementError(f"{self.name} goes by the real usage of nodes, which is not known: {loads}")
        return rounded(np.array([self._on(index, shape, loads) for index in nodes], dtype=np.float64))

    @cached_property
    def _loads(self) -> NodeLoads | str:
        """The figures, or why there are none."""
        try:
            return "there is no source of it here" if self._ask is None else self._ask()
        except StrategyError as error:
            return str(error)

    @abstractmethod
    def _shape(self, pod: Pod) -> Any:
        """Return what the scores for a pod depend on."""

    @abstractmethod
    def _on(self, index: int, shape: Any, loads: NodeLoads) -> float:
        """Return the score of a node, not rounded yet."""


def last(figures: Iterable[LoadFigure], kind: str, operators: tuple[str, ...]) -> float | None:
    """Return the last figure of a type with one of these operators, in percent; None if there is none."""
    found = None
    for figure in figures:
        if figure.type == kind and figure.operator in operators:
            found = figure.percent
    return found


_MOST = 2.0**62  # no node has so much cpu, and numpy has no whole numbers that are much larger
#: How long load-watcher's source may take to notice a pod, in seconds.
_NOTICED_AFTER = 60


class PackingArgs(TrimaranArgs, rename="camel", frozen=True):
    """The target in percent, and what pods are taken to use."""

    target_utilization: int = 0
    default_requests: Mapping[str, str | float] | None = None
    default_requests_multiplier: str = "1.5"

    def __post_init__(self) -> None:
        if self.target_utilization > WHOLE:
            raise ValueError("targetUtilization is a percentage, at most 100")
        self.multiplier()
        self.assumed()

    def target(self) -> int:
        """Return the target."""
        return self.target_utilization if self.target_utilization > 0 else 40

    def multiplier(self) -> float:
        """Return the factor by which requests are multiplied."""
        try:
            number = float(self.default_requests_multiplier)
        except ValueError:
            number = -1
        if not 0 <= number < inf:
            raise ValueError(f"defaultRequestsMultiplier {self.default_requests_multiplier!r} is not a usable number")
        return number

    def assumed(self) -> int:
        """Return what a container with neither request nor limit is taken to use, in millicores."""
        return 1000 if self.default_requests is None else parse_milli_quantity(self.default_requests.get("cpu", 0))


class TargetLoadPacking(ByLoad):
    """Scores nodes by the cpu that they would use."""

    name = "TargetLoadPacking"
    Args = PackingArgs

    def __init__(self, state: State, args: PackingArgs, ask: Callable[[], NodeLoads] | None) -> None:
        super().__init__(state, args, ask)
        self._target, self._multiplier, self._assumed = args.target(), args.multiplier(), args.assumed()

    def _shape(self, pod: Pod) -> int:
        """Return how much cpu a pod is taken to use, in millicores."""
        return sum(map(self._predicted, pod.spec.placement.cpus)) + pod.spec.placement.overhead_cpu

    def _predicted(self, container: ContainerCpu) -> int:
        if container.limit is not None:
            return container.limit
        return (
            self._assumed
            if container.request is None
            else int(rounded(min(container.request * self._multiplier, _MOST)))
        )

    def _on(self, index: int, shape: int, loads: NodeLoads) -> float:
        node = self._state.nodes[index]
        percent = last(loads.figures.get(node.name, ()), "CPU", (_MEAN, _SAMPLE))
        if percent is None:
            return 0
        more, capacity = shape + self._young(index, loads.ended), float(node.capacity.get(CPU, 0))
        # In the scheduler's order, so that rounding is the same.
        busy = WHOLE * (percent / WHOLE * capacity + more) / capacity if capacity else 0.0
        target = self._target
        if busy <= target:
            return (WHOLE - target) * busy / target + target
        return 0 if busy > WHOLE else target * (WHOLE - busy) / (WHOLE - target)

    def _young(self, index: int, ended: datetime) -> int:
        """Return how much cpu the pods of a node are taken to use that are not measured yet, in millicores."""
        name, latest = self._state.names[index], int(ended.timestamp()) - _NOTICED_AFTER
        # A pod that is expected on the node has its own field `node` elsewhere, or empty.
        young = (pod for pod in self._state.residents[index] if pod.node != name or int(pod.bound.timestamp()) > latest)
        return sum(map(self._shape, young))


#: By resource, the type of its figures.
_TYPES = {CPU: "CPU", MEMORY: "Memory"}


class VariationArgs(TrimaranArgs, rename="camel", frozen=True):
    """The weight of the deviation, and how strongly small deviations count; negative values mean 1."""

    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


class LoadVariationRiskBalancing(ByLoad):
    """Scores nodes by the risk that they are overloaded."""

    name = "LoadVariationRiskBalancing"
    Args = VariationArgs

    def _shape(self, pod: Pod) -> tuple[int, int]:
        """Return what a pod requests as the plugin counts it: no pod-level requests, sidecars as init containers."""
        plain = pod.spec.placement.requests_of_containers
        requests = pod.spec.requests if plain is None else plain
        return requests.get(CPU, 0), requests.get(MEMORY, 0)

    def _on(self, index: int, shape: tuple[int, int], loads: NodeLoads) -> float:
        node = self._state.nodes[index]
        figures = loads.figures.get(node.name, ())
        scores = [
            self._of(load, request, node.allocatable.get(name, 0))
            for (name, kind), request in zip(_TYPES.items(), shape, strict=True)
            if (load := _load_of(figures, kind))
        ]
        return min(scores, default=0)

    def _of(self, load: tuple[float, float], request: int, allocatable: int) -> float:
        """Return the score of one resource; one of which nothing is allocatable scores 0."""
        if allocatable <= 0:
            return 0.0
        # In the scheduler's order, so that rounding is the same.
        used, deviation = (min(max(percent * allocatable / WHOLE, 0.0), allocatable) for percent in load)
        mean = min((used + request) / allocatable, 1.0)
        return (1 - (mean + self._spread(deviation / allocatable)) / 2) * WHOLE

    def _spread(self, deviation: float) -> float:
        """Return what the deviation adds to the risk; a sensitivity of 0 leaves only a deviation of 100 %."""
        margin, sensitivity = self._args.safe_variance_margin, self._args.safe_variance_sensitivity
        if sensitivity:
            deviation **= 1 / sensitivity if sensitivity > 0 else 1.0
        else:
            deviation = float(deviation >= 1)
        return min(deviation * (margin if margin >= 0 else 1.0), 1.0)


def _load_of(figures: Sequence[LoadFigure], kind: str) -> tuple[float, float] | None:
    if all(figure.type != kind for figure in figures):
        return None
    mean = last(figures, kind, (_MEAN,))
    if mean is None:
        mean = last(figures, kind, (_SAMPLE, ""))
    return mean or 0.0, last(figures, kind, ("STD",)) or 0.0
