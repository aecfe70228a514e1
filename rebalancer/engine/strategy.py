"""What a strategy is: a name, its arguments, and what it asks for."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Generic, TypeVar

from rebalancer.cluster.cluster import Cluster
from rebalancer.eviction.evict import Evict
from rebalancer.policy.arguments import Args

A = TypeVar("A", bound=Args)


class Strategy(ABC, Generic[A]):
    """One way to pick pods.  Subclass `Deschedule` or `Balance`, not this.

    Attributes:
        name: as policies spell it.
        Args: the model of its arguments.
        point: the extension point at which a policy may enable it.
        needs: kinds it reads besides nodes and pods, as `kind` spells them, like `Namespace`.
        example: arguments for a first try, as a policy has them; its manual shows them.
    """

    name: ClassVar[str]
    Args: ClassVar[type[Args]]
    point: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    example: ClassVar[Mapping[str, object]] = MappingProxyType({})

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
    """A strategy that evens pods out over nodes; runs after all `Deschedule` strategies."""

    point = "balance"
