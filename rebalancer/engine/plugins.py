"""Where strategies come from: the built-in ones, and entry points of other packages."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from rebalancer.engine.strategy import Strategy
from rebalancer.errors import UsageError
from rebalancer.policy.arguments import Plugin

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
    """Return all strategies by name, the built-in ones first.

    Args:
        offered: entry points of other packages; None for all that are installed.

    Raises:
        UsageError: two packages claim one name, or one cannot be loaded.
    """
    found = {strategy.name: strategy for strategy in builtin()}
    for entry in sorted(_installed() if offered is None else offered, key=lambda each: each.name):
        strategy = _load(entry)
        if strategy.name in found:
            raise UsageError(
                f"two strategies are called {strategy.name}: {_place(found[strategy.name])} and {_place(strategy)}; "
                "uninstall one of them"
            )
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
