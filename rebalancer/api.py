"""The public face: all that a strategy may import.

A strategy is one module.  Its docstring is its manual, its `Args` are its arguments, and `run` walks the cluster and
asks for evictions:

    class OldPods(Deschedule[OldPodsArgs]):
        name = "OldPods"
        Args = OldPodsArgs

        def run(self, cluster: Cluster, evict: Evict) -> None:
            for pod in cluster.pods():
                if is_old(pod) and evict.evictable(pod, because="too old"):
                    evict(pod, because="too old")

A strategy holds no client, no clock, no limit and no log: the engine grants or refuses, counts and records.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from pydantic import Field, field_validator, model_validator

from rebalancer.args import Args, Count, IncludeOrExclude, Int, Names, Namespaces, Part, Percent, Selector, Thresholds
from rebalancer.errors import StrategyError
from rebalancer.model.cluster import Cluster
from rebalancer.model.emptying import Emptying
from rebalancer.model.evict import Evict
from rebalancer.model.eviction_order import cheapest_first
from rebalancer.model.figures import Figures
from rebalancer.model.filling import FIRST_CEILING, LAST_CEILING, Band, Filling
from rebalancer.model.forecast import Forecast
from rebalancer.model.homes import Homes
from rebalancer.model.label_index import LabelIndex
from rebalancer.model.level import Level
from rebalancer.model.measured import Measured
from rebalancer.model.node_affinity import Preferences, preferred_weight, unmet
from rebalancer.model.objects import Condition, ContainerStatus, Node, Owner, Pod
from rebalancer.model.peers import Peers
from rebalancer.model.relief import Relief
from rebalancer.model.reservations import Reservations
from rebalancer.model.selectors import LabelSelector, Requirement
from rebalancer.model.spread import Domain, Spread, Topology, below_average, moves, spreads
from rebalancer.model.states import POD_STATES
from rebalancer.model.taints import PREFER_NO_SCHEDULE, Taint, hard, untolerated
from rebalancer.model.takers import Takers
from rebalancer.model.usage import (
    METRIC_RESOURCE,
    NodeLoad,
    Percentages,
    Room,
    Usage,
    around_mean,
    means,
    measured,
    node_loads,
    requested,
)
from rebalancer.model.verdict import Failed, Refused, Verdict
from rebalancer.usage_args import MetricsUtilization

__all__ = [
    "FIRST_CEILING",
    "LAST_CEILING",
    "METRIC_RESOURCE",
    "POD_STATES",
    "PREFER_NO_SCHEDULE",
    "Args",
    "Balance",
    "Band",
    "Cluster",
    "Condition",
    "ContainerStatus",
    "Count",
    "Deschedule",
    "Domain",
    "Emptying",
    "Evict",
    "Field",
    "Figures",
    "Filling",
    "Forecast",
    "Homes",
    "IncludeOrExclude",
    "Int",
    "LabelIndex",
    "LabelSelector",
    "Level",
    "Measured",
    "MetricsUtilization",
    "Names",
    "Namespaces",
    "Node",
    "NodeLoad",
    "Owner",
    "Part",
    "Peers",
    "Percent",
    "Percentages",
    "Pod",
    "PodArgs",
    "Preferences",
    "Refused",
    "Relief",
    "Relocation",
    "Requirement",
    "Reservations",
    "Room",
    "Selector",
    "Spread",
    "Strategy",
    "StrategyError",
    "Taint",
    "Takers",
    "Thresholds",
    "Topology",
    "Usage",
    "UtilizationArgs",
    "Verdict",
    "around_mean",
    "below_average",
    "cheapest_first",
    "field_validator",
    "hard",
    "means",
    "measured",
    "model_validator",
    "moves",
    "node_loads",
    "preferred_weight",
    "requested",
    "spreads",
    "unmet",
    "untolerated",
]

A = TypeVar("A", bound=Args)


class Strategy(ABC, Generic[A]):
    """One way to pick pods.  Subclass `Deschedule` or `Balance`, not this.

    Attributes:
        name: as policies spell it.
        Args: the model of its arguments.
        point: the extension point at which a policy may enable it.
        needs: kinds it looks at beside nodes and pods, as `kind` spells them, like `Namespace`.
    """

    name: ClassVar[str]
    Args: ClassVar[type[Args]]
    point: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, args: A) -> None:
        self.args = args

    @abstractmethod
    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Ask for the eviction of the pods that this strategy picks.

        Raises:
            StrategyError: it cannot run on this cluster or with these arguments.
        """


class Deschedule(Strategy[A]):
    """A strategy that evicts pods which should not be where they are."""

    point = "deschedule"


class Balance(Strategy[A]):
    """A strategy that evens pods out over nodes; runs after all of the other kind."""

    point = "balance"


class PodArgs(Args):
    """The arguments by which most strategies narrow the pods they look at."""

    namespaces: Namespaces = Field(Namespaces(), description="Namespaces to look at: include or exclude.")
    label_selector: Selector | None = Field(None, description="Only pods with matching labels.")

    def selects(self, pod: Pod) -> bool:
        """Tell whether namespace and labels of the pod are among those to look at."""
        return pod.namespace in self.namespaces and (
            self.label_selector is None or self.label_selector.matches(pod.labels)
        )


class UtilizationArgs(Args):
    """The arguments by which strategies tell full nodes from idle ones."""

    thresholds: Thresholds = Field(
        {}, validate_default=True, description="A node is underutilized if all these resources are at most so full."
    )
    number_of_nodes: Int = Field(0, description="Act only if more nodes than this are underutilized.")
    evictable_namespaces: Namespaces = Field(Namespaces(), description="No pods from these namespaces: exclude.")
    metrics_utilization: MetricsUtilization | None = Field(None, description="Measured usage instead of requests.")

    @field_validator("evictable_namespaces")
    @classmethod
    def _no_include(cls, namespaces: Namespaces) -> Namespaces:
        if namespaces.include:
            raise ValueError("only exclude can be given here: list the namespaces to leave alone")
        return namespaces

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        mismatch = self.metrics_utilization.mismatch(self.thresholds) if self.metrics_utilization else ""
        if mismatch:
            raise ValueError(mismatch)
        return self

    def usage(self, cluster: Cluster, evict: Evict) -> Usage:
        """Return what nodes and pods use: measured if the arguments say so, else requested.

        What the source has to say beside its figures becomes warnings.

        Raises:
            StrategyError: the source has no answer, or does not measure what `thresholds` name.
        """
        if self.metrics_utilization is None:
            return requested(cluster, self.thresholds)
        return measured(cluster, self._measured(cluster, evict), self.thresholds)

    def figures(self, cluster: Cluster, evict: Evict) -> Figures | None:
        """Return the figures for the selection by relief, None if the arguments do not ask for it.

        Raises:
            StrategyError: as for `usage`.
        """
        if self.metrics_utilization is None or self.metrics_utilization.selection is None:
            return None
        rest = self.metrics_utilization.rest
        return Figures(cluster, self._measured(cluster, evict), self.thresholds, rest=rest)

    def forecast(self, cluster: Cluster) -> Forecast | None:
        """Return where the scheduler would put pods; None if the arguments say that nobody knows."""
        known = self.metrics_utilization is None or self.metrics_utilization.scheduler == "default"
        return Forecast(cluster) if known else None

    def _measured(self, cluster: Cluster, evict: Evict) -> Measured:
        figures = cluster.measure(self.metrics_utilization)
        for text in figures.warnings:
            evict.warn(text)
        return figures


@dataclass(frozen=True, slots=True)
class Relocation:
    """Pods leave nodes one by one, as long as the destinations have room for their usage."""

    cluster: Cluster
    evict: Evict
    usage: Usage
    room: Room

    def drain(
        self,
        source: NodeLoad,
        because: Callable[[], str],
        wanted: Callable[[Pod], bool],
        limit: int | None = None,
    ) -> None:
        """Evict pods of a node, the cheapest first, and keep its load and the room true to what went.

        Args:
            source: the node.
            because: returns why yet another pod should go, empty once none needs to.
            wanted: tells which pods come into question.
            limit: the most evictions; without it a node of whose pods the usage is unknown loses one, since nobody
                could tell when it has lost enough.

        Raises:
            CycleOver: see `Evict`.
        """
        evicted = 0
        limit = 1 if limit is None and self.usage.of_pod is None else limit
        for pod in self._candidates(source, because(), wanted):
            reason = because()
            if not reason or self.room.spent or evicted == limit:
                return
            amounts = self._amounts(pod, reason)
            if amounts is None:
                continue
            verdict = self.evict(pod, reason)
            if isinstance(verdict, Refused) and verdict.by == "NodeLimit":
                return
            if verdict.granted or (isinstance(verdict, Failed) and verdict.unknown):
                evicted += 1
                source.release(amounts)
                self.room.take(amounts)

    def _candidates(self, source: NodeLoad, reason: str, wanted: Callable[[Pod], bool]) -> list[Pod]:
        if not reason or self.room.spent:
            return []
        pods = self.cluster.active_pods_on(source.node)
        return cheapest_first([pod for pod in pods if wanted(pod) and self.evict.passes_filter(pod, reason)])

    def _amounts(self, pod: Pod, reason: str) -> Mapping[str, int] | None:
        """Return what the pod takes along (nothing if that is unknown of all pods), None if it cannot go."""
        if not self.room.tolerated_by(pod):
            self.evict.refuse(pod, reason, Refused("NoDestination", "tolerates the taints of no destination"))
            return None
        if not self.evict.passes_pre_eviction_filter(pod, reason):
            return None
        if self.usage.of_pod is None:
            return {}
        amounts = self.usage.of_pod(pod)
        if amounts is None:
            self.evict.refuse(pod, reason, Refused("NoUsage", "its usage is unknown"))
        return amounts
