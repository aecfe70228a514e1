"""What a strategy is, and where strategies come from: the built-in ones, and entry points of other packages."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from rebalancer.cluster.cluster import Cluster
from rebalancer.errors import UsageError
from rebalancer.eviction.evict import Evict
from rebalancer.policy.arguments import Args, Plugin

A = TypeVar("A", bound=Args)


class Strategy(ABC, Generic[A]):
    """One way to pick pods.  Subclass `Deschedule` or `Balance`, not this."""

    name: ClassVar[str]  # as policies spell it
    Args: ClassVar[type[Args]]  # the model of its arguments
    point: ClassVar[str]  # the extension point at which a policy may enable it
    needs: ClassVar[frozenset[str]] = frozenset()  # kinds it reads besides nodes and pods, like `Namespace`
    example: ClassVar[Mapping[str, object]] = MappingProxyType({})  # arguments for a first try; its manual shows them

    def __init__(self, args: A) -> None:
        self.args = args

    @abstractmethod
    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Ask for the eviction of the pods that this strategy picks; raises StrategyError if it cannot run here."""


class Deschedule(Strategy[A]):
    """A strategy that evicts pods which should not be where they are."""

    point = "deschedule"


class Balance(Strategy[A]):
    """A strategy that evens pods out over nodes; runs after all `Deschedule` strategies."""

    point = "balance"


#: The group of entry points in which a package offers strategies.
GROUP = "rebalancer.strategies"

#: A wheel has the built-in strategies inside this package, a checkout has them beside it.  Only one of the two exists.
_HOMES = ("rebalancer.strategies", "strategies")

StrategyType = type[Strategy[Any]]


def builtin() -> tuple[StrategyType, ...]:
    """Return the built-in strategies, in the order in which they are listed."""
    home = import_module(next(name for name in _HOMES if find_spec(name)))
    return tuple(home.BUILTIN)


def strategies(offered: Iterable[EntryPoint] | None = None) -> Mapping[str, StrategyType]:
    """Return all strategies by name, the built-in ones first, then those `offered`; None for all that are installed.

    Raises UsageError if two packages claim one name, or one cannot be loaded.
    """
    found = {strategy.name: strategy for strategy in builtin()}
    for entry in sorted(_installed() if offered is None else offered, key=lambda each: each.name):
        strategy = _load(entry)
        if strategy.name in found:
            both = f"{_place(found[strategy.name])} and {_place(strategy)}"
            raise UsageError(f"two strategies are called {strategy.name}: {both}; uninstall one of them")
        found[strategy.name] = strategy
    return found


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """Return what other packages offer; finding it opens a file of each package that is installed."""
    return tuple(entry_points(group=GROUP))


def _load(entry: EntryPoint) -> StrategyType:
    try:
        loaded = entry.load()
    except Exception as error:  # importing it runs foreign code, which may raise anything
        raise UsageError(f"strategy {entry.name} of {entry.value} cannot be loaded: {error}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Strategy)):
        raise UsageError(f"strategy {entry.name} of {entry.value} is not a rebalancer.api.Strategy")
    missing = [attribute for attribute in ("name", "Args", "point") if not hasattr(loaded, attribute)]
    if missing:
        raise UsageError(f"strategy {entry.name} of {entry.value} lacks {' and '.join(missing)}")
    return loaded


def _place(strategy: StrategyType) -> str:
    return f"{strategy.__module__}.{strategy.__qualname__}"


def plugin(strategy: StrategyType) -> Plugin:
    """Return what a policy may say about a strategy."""
    return Plugin(strategy.name, strategy.Args, frozenset({strategy.point}))
