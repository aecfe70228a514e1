"""What a source of real usage says about nodes and pods, whatever the source, and what schedulers go by.

Figures are integers by resource name, cpu in millicores, memory in bytes, `MetricResource` in whole percent; what was
not measured is absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from rebalancer.cluster.resources import Resources


class NodeMetrics(msgspec.Struct, frozen=True, gc=False):
    """What metrics-server says about a node; `taken` is the end of its sample, None where it does not say."""

    name: str
    usage: Resources
    taken: datetime | None = None


class PodMetrics(msgspec.Struct, frozen=True, gc=False):
    """The same about a pod, summed over its containers; a resource that some container lacks is absent."""

    namespace: str
    name: str
    usage: Resources
    taken: datetime | None = None


#: What a node used on one earlier day, by the seconds from this time of day on; negative before it, empty if not known.
Course = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ComingLoad:
    """What nodes used on so many earlier days at times to come: by resource and node, a course for each."""

    days: int
    courses: Mapping[str, Mapping[str, tuple[Course, ...]]]


# The figures by which schedulers that know load score nodes, as load-watcher gives them.

#: The source that the scheduler plugins ask where their configuration names none.
METRICS_SERVER = "KubernetesMetricsServer"


class LoadFigure(msgspec.Struct, frozen=True, gc=False, rename={"percent": "value"}):
    """One figure about a node."""

    type: str = ""  # `CPU` or `Memory`; schedulers ignore others
    operator: str = ""  # `AVG` for a mean, `STD` for a standard deviation, `Latest` for a single sample
    percent: float = 0  # of the node's capacity


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """The figures of nodes that have some, in the order of the source, and the end of the time that they cover."""

    figures: Mapping[str, Sequence[LoadFigure]]
    ended: datetime


@dataclass(frozen=True, slots=True)
class LoadsWanted:
    """Asks for what a scheduler scores by: figures of `LoadWatcher`, or of the source that its configuration names."""

    source: str = METRICS_SERVER


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of one source, taken for one cycle."""

    #: By node with a fresh sample, what it uses as a source of pods: the window's figure at the source quantile, the
    #: sample itself where there is no window.  All have the same resources.
    nodes: Mapping[str, Resources]
    peaks: Mapping[str, Resources]  # the same as destinations, at the destination quantile; `nodes` if none is set
    #: By (namespace, name), what each pod uses; also pods that have left within the window, where the source still
    #: knows them.  None if the source knows nothing of pods.
    pods: Mapping[tuple[str, str], Resources] | None = None
    pod_nodes: Mapping[tuple[str, str], str] = field(default_factory=dict)  # the node where that was, if it is known
    missing: Mapping[str, str] = field(default_factory=dict)  # why nodes of the cycle have no fresh sample, by name
    window: timedelta = timedelta(0)  # the time that the figures cover; zero for a single sample
    taken: datetime | None = None  # of the oldest sample of a node, stale ones too; None where it is not said
    warnings: tuple[str, ...] = ()  # what the reader of the report should know
    coming: ComingLoad | None = None  # what nodes used on earlier days at the times that are to come, if asked for
    loads: NodeLoads | None = None  # what a scheduler scores by; only if asked for, and then all else is empty
