"""Where the replacements of pods would go, in the one picture of the future: the simulator on top of the cluster.

It follows the cluster: where a pod is expected its replacement runs, and pods that went end or have ended.  Nobody
knows how long they take, so the scheduler is asked twice: soon, while all of them end and those replacements have not
come that wait for it, and later, when all are gone.  An answer holds for both.  Ask the cluster for the one there is:
`cluster.index(Simulation)`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.selectors import Labels
from rebalancer.cluster.taints import Taint
from rebalancer.scheduling.phase import Phase, either
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.replacement import Moment, Replacement, replacement
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from rebalancer.scheduling.simulator.versions import newest_minor
from rebalancer.scheduling.stand_ins import completed


@dataclass(frozen=True, slots=True)
class _Start:
    """The cluster as it was read."""

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
        self._companions, self.notices = completed(snapshot.companions, snapshot.pods)
        document = snapshot.scheduler_configuration
        self._configuration = None if document is None else read_configuration(document)
        self._replacements: dict[Pod, Replacement] = {}
        self._specs: dict[tuple[int, int], tuple[PodSpec, PodSpec]] = {}
        self._ending: dict[Pod, Pod] = {}
        self._answers: dict[Pod, list[Answer]] = {}
        self._taints: Mapping[str, Sequence[Taint]] = {}
        self._soon = self._phase()
        self._later: Phase | None = None  # until something changes both are the same
        self._catch_up()

    def _phase(self) -> Phase:
        snapshot = self._cluster.snapshot
        state = State(_Start(snapshot.nodes, snapshot.pods, snapshot.namespaces), self._companions)
        phase = Phase(state, Simulator(state, profiles(state, self._configuration, newest_minor(snapshot.nodes))))
        phase.suppose(self._taints)
        return phase

    def _catch_up(self) -> None:
        """Take in what has changed in the cluster since it was read."""
        for pod in self._cluster.snapshot.pods:
            if not self._cluster.contains(pod):
                self.left(pod, 1)
        for node in self._cluster.snapshot.nodes:
            for pod in self._cluster.expected_on(node):
                self.came(pod, node, 1)

    def ask(self, pod: Pod) -> Answer:
        """Return where the replacement of a pod would go if the pod were evicted now, or was just evicted.

        A replacement that is made at once meets the old pod, which still has its room, its ports and its affinity;
        only spreading does not count it any more.  Asked again before anything has changed, it costs nothing.
        """
        return reduce(either, self.in_turn(pod))

    def in_turn(self, pod: Pod) -> Iterator[Answer]:
        """Yield the answer for soon, and for later where that may be another; who has heard enough asks no more."""
        known = self._answers.setdefault(pod, [])
        for number, phase in enumerate(self._phases()):
            if number == len(known):
                known.append(self._ask(pod, phase))
            yield known[number]

    def _ask(self, pod: Pod, phase: Phase) -> Answer:
        coming = self.replacement(pod)
        if coming.pod is None:
            return Answer(unknown=coming.unknown)
        present = pod if self._cluster.contains(pod) and pod.active else None
        if present is None and phase is self._soon:
            present = self._ending.get(pod)
        meanwhile = self._ending_of(pod) if coming.moment is Moment.AT_ONCE and pod.active else None
        return phase.ask(coming.pod, pod.node, present, meanwhile)

    def replacement(self, pod: Pod) -> Replacement:
        """Return what the controller of a pod would make in its place; the very same each time it is asked."""
        known = self._replacements.get(pod)
        if known is None:
            known = self._replacements[pod] = self._ranked(replacement(pod, self._templates), pod.spec.priority)
        return known

    def _ranked(self, made: Replacement, priority: int | None) -> Replacement:
        """Return a replacement with its priority as a number, which a template names by its class only."""
        if made.pod is None or priority is None or made.pod.spec.priority is not None:
            return made
        spec = made.pod.spec
        key = (id(spec), priority)  # the value keeps the spec alive; replicas go on sharing theirs
        _, ranked = self._specs.setdefault(key, (spec, msgspec.structs.replace(spec, priority=priority)))
        return Replacement(msgspec.structs.replace(made.pod, spec=ranked), made.moment)

    @contextmanager
    def tainted(self, taints: Mapping[str, Sequence[Taint]]) -> Iterator[None]:
        """Answer meanwhile as if nodes had these taints too, by name of the node, instead of those of an outer block.

        Only soft ones (PreferNoSchedule) are looked at.  It is cheap to ask for many pods within one block.
        """
        before = self._taints
        self._suppose(taints)
        try:
            yield
        finally:
            self._suppose(before)

    def _suppose(self, taints: Mapping[str, Sequence[Taint]]) -> None:
        self._answers.clear()
        self._taints = taints
        for phase in self._phases():
            phase.suppose(taints)

    def left(self, pod: Pod, sign: int) -> None:
        """Let a pod end, and be gone later; or be back."""
        if not pod.active or not pod.node:
            return
        self._change()
        ending = self._ending_of(pod)
        if sign > 0:
            self._ending[pod] = ending
            self._soon.exchange(pod.node, pod, ending)
            self._phases()[-1].exchange(pod.node, pod, None)
        else:
            del self._ending[pod]
            self._soon.exchange(pod.node, ending, pod)
            self._phases()[-1].exchange(pod.node, None, pod)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Let the replacement of a pod run on a node, or not any more; the pod itself where nobody knows what comes."""
        self._change()
        made = self.replacement(pod)
        coming = made.pod or pod
        phases = self._phases() if made.moment is Moment.AT_ONCE else self._phases()[-1:]
        for phase in phases:
            phase.exchange(node.name, *((None, coming) if sign > 0 else (coming, None)))

    def _change(self) -> None:
        self._answers.clear()
        if self._later is None:
            self._later = self._phase()

    def _phases(self) -> tuple[Phase, ...]:
        return (self._soon, self._later) if self._later else (self._soon,)

    def _ending_of(self, pod: Pod) -> Pod:
        return self._ending.get(pod) or msgspec.structs.replace(pod, terminating=True)
