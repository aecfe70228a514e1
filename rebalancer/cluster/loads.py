"""The figures by which schedulers that know load score nodes, as load-watcher gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

#: The source that the scheduler plugins ask where their configuration names none.
METRICS_SERVER = "KubernetesMetricsServer"


class LoadFigure(msgspec.Struct, frozen=True, gc=False, rename={"percent": "value"}):
    """One figure about a node.

    Attributes:
        type: `CPU` or `Memory`; schedulers ignore others.
        operator: `AVG` for a mean, `STD` for a standard deviation, `Latest` for a single sample.
        percent: of the node's capacity.
    """

    type: str = ""
    operator: str = ""
    percent: float = 0


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """The figures of all nodes.

    Attributes:
        figures: by name of the node, in the order of the source; a node without figures is absent.
        ended: the end of the time that the figures cover.
    """

    figures: Mapping[str, Sequence[LoadFigure]]
    ended: datetime


@dataclass(frozen=True, slots=True)
class LoadsWanted:
    """Asks for the figures that a scheduler goes by, in place of a strategy's `metricsUtilization`.

    Attributes:
        source: whom the scheduler asks: `LoadWatcher`, or the source that its configuration names as the provider.
    """

    source: str = METRICS_SERVER
