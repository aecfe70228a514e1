"""Trimaran's plugins: their arguments, and how they are made.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from math import inf

import msgspec
import numpy as np

from rebalancer.cluster.measured import METRICS_SERVER, LoadFigure, LoadsWanted, NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import ContainerCpu, Pod
from rebalancer.cluster.resources import CPU, MEMORY, Resources, parse_milli_quantity
from rebalancer.errors import StrategyError
from rebalancer.scheduling.simulator.configuration import (
    Args,
    Configuration,
    ConfigurationError,
    ProfileConfig,
    converted,
    enabled,
)
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Nodes, rounded
from rebalancer.scheduling.simulator.plugin import Score, UnknownPlacementError
from rebalancer.scheduling.simulator.state import Shapes, State

MEAN = "AVG"
DEVIATION = "STD"
SAMPLE = "Latest"

#: Returns the figures by which a plugin scores; raises UnknownPlacementError where they are not known.
Loads = Callable[[], NodeLoads]


def loads_of(plugin: str, ask: Callable[[], NodeLoads] | None) -> Loads:
    """Return the figures for a plugin, asked for when the plugin first scores a pod.

    Args:
        plugin: the plugin's name.
        ask: returns the figures, and raises StrategyError without them; None where nobody measures.
    """

    @cache
    def answered() -> NodeLoads | str:
        try:
            return "there is no source of it here" if ask is None else ask()
        except StrategyError as error:
            return str(error)

    def loads() -> NodeLoads:
        found = answered()
        if isinstance(found, str):
            raise UnknownPlacementError(f"{plugin} goes by the real usage of nodes, which is not known: {found}")
        return found

    return loads


def last(figures: Iterable[LoadFigure], kind: str, operators: tuple[str, ...]) -> float | None:
    """Return the last figure of a type with one of these operators, in percent; None if there is none."""
    found = None
    for figure in figures:
        if figure.type == kind and figure.operator in operators:
            found = figure.percent
    return found


_TYPE = "CPU"
#: How long load-watcher's source may take to notice a pod, in seconds.
_NOTICED_AFTER = 60


@dataclass(frozen=True, slots=True)
class Target:
    """The plugin's arguments: target in percent, factor for requests, millicores where a container has neither."""

    utilization: int = 40
    multiplier: float = 1.5
    assumed: int = 1000


class TargetLoadPacking:
    """Scores nodes by the cpu that they would use."""

    name = "TargetLoadPacking"

    def __init__(self, state: State, loads: Loads, target: Target = Target()) -> None:
        self._state = state
        self._loads = loads
        self._target = target
        self._scores = Shapes(state, self._score, self._predicted)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not known.
        """
        return self._scores.of(pod, nodes)

    def _predicted(self, pod: Pod) -> int:
        return predicted(pod, self._target)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        loads, asked = self._loads(), self._predicted(pod)
        scores = [self._of(index, asked, loads) for index in nodes]
        return np.array(scores, dtype=np.int64).reshape(nodes.shape)

    def _of(self, index: int, asked: int, loads: NodeLoads) -> int:
        node = self._state.nodes[index]
        percent = last(loads.figures.get(node.name, ()), _TYPE, (MEAN, SAMPLE))
        if percent is None:
            return 0
        busy = _busy(node, percent, asked + self._young(index, loads.ended))
        return packed(busy, self._target.utilization)

    def _young(self, index: int, ended: datetime) -> int:
        """Return how much cpu the pods of a node are taken to use that are not measured yet, in millicores."""
        name, latest = self._state.names[index], int(ended.timestamp()) - _NOTICED_AFTER
        return sum(self._predicted(pod) for pod in self._state.residents[index] if is_young(pod, name, latest))


def is_young(pod: Pod, node: str, latest: int) -> bool:
    """Return whether a pod came to a node after a time, in seconds since 1970; a pod that is expected there did."""
    return pod.node != node or int(pod.bound.timestamp()) > latest


def _busy(node: Node, percent: float, more: int) -> float:
    """Return how much of a node's cpu is used with so many millicores more, in percent; in the scheduler's order."""
    capacity = float(node.capacity.get(CPU, 0))
    return WHOLE * (percent / WHOLE * capacity + more) / capacity if capacity else 0.0


def predicted(pod: Pod, target: Target) -> int:
    """Return how much cpu a pod is taken to use, in millicores."""
    return sum(_predicted(each, target) for each in pod.spec.placement.cpus) + pod.spec.placement.overhead_cpu


def _predicted(container: ContainerCpu, target: Target) -> int:
    if container.limit is not None:
        return container.limit
    return target.assumed if container.request is None else rounded(container.request * target.multiplier)


def packed(busy: float, target: int) -> int:
    """Return the score of a node, by how busy it would be in percent."""
    if busy <= target:
        return rounded((WHOLE - target) * busy / target + target)
    return 0 if busy > WHOLE else rounded(target * (WHOLE - busy) / (WHOLE - target))


#: By resource, the type of its figures.
_TYPES = {CPU: "CPU", MEMORY: "Memory"}


@dataclass(frozen=True, slots=True)
class Variation:
    """The plugin's arguments: the weight of the deviation, and how strongly small deviations count."""

    margin: float = 1.0
    sensitivity: float = 1.0


class LoadVariationRiskBalancing:
    """Scores nodes by the risk that they are overloaded."""

    name = "LoadVariationRiskBalancing"

    def __init__(self, state: State, loads: Loads, variation: Variation = Variation()) -> None:
        self._state = state
        self._loads = loads
        self._variation = variation
        self._scores = Shapes(state, self._score, _shape)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return the scores; a node without figures scores 0.

        Raises:
            UnknownPlacementError: usage is not known.
        """
        return self._scores.of(pod, nodes)

    def _score(self, pod: Pod, nodes: Nodes) -> ByNode:
        loads, requests = self._loads(), requests_of(pod)
        found = (self._state.nodes[index] for index in nodes)
        scores = [self._on(node, requests, loads.figures.get(node.name, ())) for node in found]
        return np.array(scores, dtype=np.int64).reshape(nodes.shape)

    def _on(self, node: Node, requests: Resources, figures: Sequence[LoadFigure]) -> int:
        scores = [
            self._of(load, requests.get(name, 0), node.allocatable.get(name, 0))
            for name, kind in _TYPES.items()
            if (load := load_of(figures, kind))
        ]
        return rounded(min(scores, default=0))

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
        sensitivity = self._variation.sensitivity
        power = deviation ** (1 / sensitivity) if sensitivity else float(deviation >= 1)
        return min(power * self._variation.margin, 1.0)


def _shape(pod: Pod) -> object:
    requests = requests_of(pod)
    return requests.get(CPU), requests.get(MEMORY)


def requests_of(pod: Pod) -> Resources:
    """Return what a pod requests as the plugin counts it: no pod-level requests, sidecars as init containers."""
    plain = pod.spec.placement.requests_of_containers
    return pod.spec.requests if plain is None else plain


def load_of(figures: Sequence[LoadFigure], kind: str) -> tuple[float, float] | None:
    """Return mean and standard deviation in percent; None if there is no figure of this type."""
    if all(figure.type != kind for figure in figures):
        return None
    mean = last(figures, kind, (MEAN,))
    if mean is None:
        mean = last(figures, kind, (SAMPLE, ""))
    return mean or 0.0, last(figures, kind, (DEVIATION,)) or 0.0


LOAD_WATCHER = "LoadWatcher"

#: Returns the usage of nodes from that source; raises StrategyError where there is none.
AskLoads = Callable[[LoadsWanted], NodeLoads]


def makers(
    state: State, config: ProfileConfig, target: Target, ask: AskLoads | None
) -> Mapping[str, Callable[[], Score]]:
    """Return what makes each plugin of a profile; it raises ConfigurationError for arguments it cannot read.

    The target is that of TargetLoadPacking; without `ask` nobody measures real usage.
    """

    def loads(plugin: str) -> Loads:
        wanted = loads_wanted(plugin, config.args(plugin))
        return loads_of(plugin, partial(ask, wanted) if ask else None)

    packs, balances = TargetLoadPacking, LoadVariationRiskBalancing
    return {
        packs.name: lambda: packs(state, loads(packs.name), target),
        balances.name: lambda: balances(state, loads(balances.name), variation(config.args(balances.name))),
    }


class _Provider(msgspec.Struct):
    type: str = ""


class _Trimaran(msgspec.Struct, rename="camel"):
    watcher_address: str = ""
    metric_provider: _Provider = msgspec.field(default_factory=_Provider)


def loads_wanted(plugin: str, args: Args) -> LoadsWanted:
    """Return whom the plugin asks for usage."""
    wire = converted(plugin, args, _Trimaran)
    return LoadsWanted(LOAD_WATCHER if wire.watcher_address else wire.metric_provider.type or METRICS_SERVER)


class _Packing(_Trimaran, rename="camel"):
    target_utilization: int = 0
    default_requests: Mapping[str, str | float] | None = None
    default_requests_multiplier: str = "1.5"


def packing(args: Args) -> Target:
    """Return the target of TargetLoadPacking.

    Raises:
        ConfigurationError: an argument has no value that can be used.
    """
    wire = converted(TargetLoadPacking.name, args, _Packing)
    if wire.target_utilization > WHOLE:
        raise ConfigurationError(f"{TargetLoadPacking.name}: targetUtilization is a percentage, at most 100")
    target = Target(multiplier=_multiplier(wire.default_requests_multiplier))
    if wire.target_utilization > 0:
        target = replace(target, utilization=wire.target_utilization)
    if wire.default_requests is None:
        return target
    return replace(target, assumed=parse_milli_quantity(wire.default_requests.get("cpu", 0)))


def _multiplier(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < inf:
        raise ConfigurationError(f"{TargetLoadPacking.name}: defaultRequestsMultiplier {text!r} is not a usable number")
    return number


def shared_target(configuration: Configuration) -> Target:
    """Return the target that counts in all profiles: the plugin keeps one, that of the last profile that enables it.

    Raises:
        ConfigurationError: an argument has no value that can be used.
    """
    name = TargetLoadPacking.name
    having = [each for each in configuration.profiles if name in enabled(each, "score")]
    return packing(having[-1].args(name)) if having else Target()


class _Variation(_Trimaran, rename="camel"):
    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


def variation(args: Args) -> Variation:
    """Return the margin and the sensitivity of LoadVariationRiskBalancing."""
    wire = converted(LoadVariationRiskBalancing.name, args, _Variation)
    margin, sensitivity = wire.safe_variance_margin, wire.safe_variance_sensitivity
    return Variation(1.0 if margin < 0 else margin, 1.0 if sensitivity < 0 else sensitivity)
