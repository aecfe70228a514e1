"""Where the replacements of pods would go, in the one picture of the future: the simulator on top of the cluster.

It follows the cluster: pods that went are gone, and where a pod is expected its replacement runs.  Ask the cluster for
the one there is: `cluster.index(Simulation)`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.replacement import Moment, Replacement, replacement
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.versions import newest_minor
from rebalancer.scheduling.stand_ins import completed


@dataclass(frozen=True, slots=True)
class _Present:
    """A cluster as it is at one moment, without the pods that went."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    namespaces: Mapping[str, Labels] | None


class Simulation:
    """Answers for one cluster.

    Attributes:
        notices: what stands in for objects that were not read, in words.
    """

    def __init__(self, cluster: Cluster) -> None:
        """Take the cluster in as it is, with the pods that are expected somewhere.

        Raises:
            ConfigurationError: the scheduler's configuration cannot be read.
        """
        snapshot = cluster.snapshot
        self._cluster = cluster
        self._templates = snapshot.companions.templates
        companions, self.notices = completed(snapshot.companions, snapshot.pods)
        present = [pod for pod in snapshot.pods if cluster.contains(pod)]
        self._state = State(_Present(snapshot.nodes, present, snapshot.namespaces), companions)
        document = snapshot.scheduler_configuration
        configuration = None if document is None else read_configuration(document)
        minor = newest_minor(snapshot.nodes)
        self._simulator = Simulator(self._state, profiles(self._state, configuration, minor))
        self._replacements: dict[Pod, Replacement] = {}
        self._answers: dict[Pod, Answer] = {}
        for node in snapshot.nodes:
            for pod in cluster.expected_on(node):
                self.came(pod, node, 1)

    def ask(self, pod: Pod) -> Answer:
        """Return where the replacement of a pod would go if the pod were evicted now, or was just evicted.

        A replacement that is made at once meets the old pod, which still has its room, its ports and its affinity;
        only spreading does not count it any more.  Asked again before anything has changed, it costs nothing.
        """
        known = self._answers.get(pod)
        if known is None:
            known = self._answers[pod] = self._ask(pod)
        return known

    def _ask(self, pod: Pod) -> Answer:
        coming = self.replacement(pod)
        if coming.pod is None:
            return Answer(unknown=coming.unknown)
        with self._leaving(pod, coming.moment):
            return self._simulator.ask(coming.pod)

    def replacement(self, pod: Pod) -> Replacement:
        """Return what the controller of a pod would make in its place; the very same each time it is asked."""
        known = self._replacements.get(pod)
        if known is None:
            known = self._replacements[pod] = replacement(pod, self._templates)
        return known

    @contextmanager
    def tainted(self, taints: Mapping[str, Sequence[Taint]]) -> Iterator[None]:
        """Answer meanwhile as if nodes had these taints too, by name of the node.

        Only soft ones (PreferNoSchedule) are looked at.  To ask under the same taints again is cheap.
        """
        before, index = self._state.soft_taints, self._state.index
        self._state.soft_taints = {index[name]: each for name, each in taints.items() if name in index}
        self._answers.clear()
        try:
            yield
        finally:
            self._state.soft_taints = before
            self._answers.clear()

    def left(self, pod: Pod, sign: int) -> None:
        """Let a pod be gone, or back."""
        self._answers.clear()
        if pod.active and pod.node in self._state.index:
            step = self._state.remove if sign > 0 else self._state.place
            step(pod, pod.node)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Let the replacement of a pod run on a node, or not any more; the pod itself where nobody knows what comes."""
        self._answers.clear()
        step = self._state.place if sign > 0 else self._state.remove
        step(self.replacement(pod).pod or pod, node.name)

    @contextmanager
    def _leaving(self, pod: Pod, moment: Moment) -> Iterator[None]:
        """Let a pod be on its way while its replacement is made, or gone by then."""
        there = pod.active and pod.node in self._state.index
        present = there and self._cluster.contains(pod)
        ending = msgspec.structs.replace(pod, terminating=True) if there and moment is Moment.AT_ONCE else None
        self._exchange(pod.node, pod if present else None, ending)
        try:
            yield
        finally:
            self._exchange(pod.node, ending, pod if present else None)

    def _exchange(self, node: str, goes: Pod | None, comes: Pod | None) -> None:
        if goes:
            self._state.remove(goes, node)
        if comes:
            self._state.place(comes, node)
