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

from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from pydantic import Field, field_validator, model_validator

from rebalancer.args import Args, Count, Int, Names, Namespaces, Part, Percent, Selector
from rebalancer.errors import StrategyError
from rebalancer.model.cluster import Cluster
from rebalancer.model.objects import Condition, ContainerStatus, Node, Owner, Pod
from rebalancer.model.selectors import LabelSelector, Requirement
from rebalancer.model.taints import PREFER_NO_SCHEDULE, Taint, hard, untolerated
from rebalancer.model.verdict import Refused, Verdict

__all__ = [
    "PREFER_NO_SCHEDULE",
    "Args",
    "Balance",
    "Cluster",
    "Condition",
    "ContainerStatus",
    "Count",
    "Deschedule",
    "Evict",
    "Field",
    "Int",
    "LabelSelector",
    "Names",
    "Namespaces",
    "Node",
    "Owner",
    "Part",
    "Percent",
    "Pod",
    "PodArgs",
    "Refused",
    "Requirement",
    "Selector",
    "Strategy",
    "StrategyError",
    "Taint",
    "Verdict",
    "cheapest_first",
    "field_validator",
    "hard",
    "model_validator",
    "untolerated",
]

A = TypeVar("A", bound=Args)


class Evict(Protocol):
    """What a strategy asks of the engine.

    The questions are the reference's extension points, answered for the profile the strategy runs in and on the
    cluster as it is when they are asked; so ask for all pods of a listing before evicting the first of them.
    """

    def passes_filter(self, pod: Pod) -> bool:
        """Tell whether no protection covers the pod (the reference's Filter)."""
        ...

    def passes_pre_eviction_filter(self, pod: Pod) -> bool:
        """Tell whether the pod has somewhere to go (the reference's PreEvictionFilter: nodeFit, namespaces)."""
        ...

    def evictable(self, pod: Pod, because: str | None = None) -> bool:
        """Tell whether the pod passes both filters.

        Args:
            pod: the pod in question.
            because: why the strategy wants it gone.  If given, a no is recorded as a refusal; without it the question
                leaves no trace.
        """
        ...

    def __call__(self, pod: Pod, because: str) -> Verdict:
        """Ask for the eviction of a pod and return the verdict; `granted` tells whether it goes.

        A granted pod leaves the cluster at once.

        Args:
            pod: the pod to evict.
            because: why, with numbers that a person can check.

        Raises:
            CycleOver: the total limit is used up; it ends the strategy, which must not catch it.
        """
        ...


class Strategy(Generic[A]):
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

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Ask for the eviction of the pods that this strategy picks.

        Raises:
            StrategyError: it cannot run on this cluster or with these arguments.
        """
        raise NotImplementedError


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


_QOS_ORDER = ("BestEffort", "Burstable", "Guaranteed")


def cheapest_first(pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods in the order in which they should go: the reference's priority and QoS order.

    No priority before any, low before high, BestEffort before Burstable before Guaranteed, pods that prefer no
    eviction last; ties by age, oldest first, then namespace and name.
    """
    return sorted(pods, key=_cost)


def _cost(pod: Pod) -> tuple[object, ...]:
    priority = pod.spec.priority
    qos = _QOS_ORDER.index(pod.qos) if pod.qos in _QOS_ORDER else len(_QOS_ORDER)
    return (priority is not None, priority or 0, qos, pod.prefer_no_eviction, *pod.age_order)
