"""The interface of the simulated scheduler plugins."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.simulator.nodes import Nodes

#: By index of the node, the reasons for which the plugin refuses it, in the scheduler's words.
Refusals = Mapping[int, tuple[str, ...]]

NO_REFUSALS: Refusals = {}


@runtime_checkable
class Filter(Protocol):
    """Refuses nodes."""

    name: str

    def refusals(self, pod: Pod, nodes: Sequence[int], /) -> Refusals:
        """Return which of these nodes the plugin refuses, and why; the result may hold other nodes too.

        Raises:
            UnknownPlacementError: what the answer depends on was not read.
        """
        ...


@runtime_checkable
class Score(Protocol):
    """Scores nodes."""

    name: str

    def scores(self, pod: Pod, nodes: Nodes, /) -> Sequence[int] | None:
        """Return a score for each of these nodes, 0 to 100, in their order; None if it does not score this pod.

        Raises:
            UnknownPlacementError: what the answer depends on was not read.
        """
        ...


class PodUnschedulableError(Exception):
    """A plugin refuses the pod before it looks at any node; the message is the scheduler's."""


class UnknownPlacementError(Exception):
    """It is not known where the pod would go; the message says why."""
