"""How busy nodes are, for plugins that score by it; the source of the figures is not known here."""

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.scheduling.simulator.plugin import UnknownPlacementError


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node uses of a resource, in the resource's units: the mean of a window, and the standard deviation."""

    average: float
    deviation: float = 0.0


#: By name of the node, by resource; None where usage is not measured.
Loads = Mapping[str, Mapping[str, NodeLoad]] | None


def measured(loads: Loads, plugin: str) -> Mapping[str, Mapping[str, NodeLoad]]:
    """Return the loads.

    Raises:
        UnknownPlacementError: usage is not measured.
    """
    if loads is None:
        raise UnknownPlacementError(f"{plugin} goes by real usage, which is not measured")
    return loads
