"""How busy nodes are, for plugins that score by it (Trimaran's).

Source: the documentation of Trimaran in kubernetes-sigs/scheduler-plugins, and its plugins of 0.35 observed.  They read
load-watcher's figures by the exact name of the node, and know nothing of a node that has another name there.
"""

from collections.abc import Callable, Iterable
from functools import cache

from rebalancer.cluster.loads import LoadFigure, NodeLoads
from rebalancer.errors import StrategyError
from rebalancer.scheduling.simulator.plugin import UnknownPlacementError

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
