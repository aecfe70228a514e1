"""Where a replacement goes if others come and go at the same time: in any order, as many of them as it may be.

Of pods that go in a cycle nobody knows which have been evicted and have ended, and of which the replacement has come,
when the scheduler looks at one more.  So two states of the cluster are kept:

- **vacated**: all pods that went are gone, and no replacement has come.
- **crowded**: all of them still terminate, and all replacements have come, each on every node where it may land.

On each node, what is taken lies between the two, whatever the order.  Which nodes may win in between is worked out from
the scores in both (see `rebalancer.scheduling.ranges`).  Where a rule ties others to the pod (they are spread together,
or a term of pod affinity of one selects the other), what they do is not a matter of room alone: each thing that they
may do is tried.  With too many such others nothing is known, and the pod has nowhere to go.

Example: of equal nodes n2 and n3, n2 has a little more room.  Two pods go, each of which the scheduler would put on n2
if it came first; then n3 has more room.  In any order each may land on n2 or n3, and these are the answer for both.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from functools import reduce
from itertools import product

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.phase import Phase, either
from rebalancer.scheduling.ranges import BALANCE, FIT, Extremes
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.constraints import DefaultSelectors
from rebalancer.scheduling.simulator.plugin import UnknownPlacementError
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.ties import Newcomer, Ties, Together

#: At most so many things that tied pods may do are tried, together.
_MOST_CASES = 32

_TOO_TIED = "rules tie it to several others that go as well, and nobody knows which of them comes first"


class Old(Enum):
    """What has become of a pod that goes."""

    RUNS = "it has not been evicted yet"
    ENDS = "it terminates"
    GONE = "it is gone"
    NOT_RUNNING = "it terminates or is gone, and that does not matter"


#: What a tied pod does: what has become of the old one, and where the new one is; no node if it has not come.
Case = tuple[Pod, Old, str]


class AnyOrder:
    """Answers for one cluster, which it follows: get it with `cluster.index(AnyOrder)`."""

    def __init__(self, cluster: Cluster) -> None:
        """Start from the cluster as it is now.

        Raises:
            ConfigurationError: the scheduler's configuration cannot be read.
        """
        self._cluster = cluster
        self._simulation = cluster.index(Simulation)
        self._vacated, self._crowded = self._simulation.phase(), self._simulation.phase()
        self._ties = Ties(cluster.snapshot.namespaces, hosts_differ=False)
        self._together = Together(DefaultSelectors(self._simulation.companions))
        self._gone: dict[Pod, Pod] = {}
        self._came: dict[Pod, tuple[str, ...]] = {}
        self._wide: dict[Pod, tuple[str, ...]] = {}
        self._taints = self._simulation.taints
        self._uncertain: Collection[Pod] | None = None  # None for all
        for pod in cluster.snapshot.pods:
            if not cluster.contains(pod):
                self.left(pod, 1)
        for node in cluster.snapshot.nodes:
            for pod in cluster.expected_on(node):
                self.came(pod, node, 1)

    def ask(self, pod: Pod) -> Answer:
        """Return all nodes where the replacement may land if the pod goes now, or went, and others come in any order.

        Others land where they are expected, or elsewhere as told with `may_land`.  Where the scheduler scores only a
        part of the nodes, the answer is that of the crowded state.
        """
        try:
            cases = self._cases(pod)
        except UnknownPlacementError as error:
            return Answer(unknown=str(error))
        if cases is None:
            return Answer(reason=_TOO_TIED, unknown=_TOO_TIED)
        found: set[str] = set()
        moments = self._simulation.replacement(pod).moments
        with self._without(pod):
            for case in cases:
                with self._supposed(case):
                    answer = reduce(either, [self._between(pod, moment) for moment in moments])
                if not answer.known or answer.reason or answer.sampled:
                    return answer
                found.update(answer.nodes)
        return Answer(nodes=tuple(sorted(found)))

    @contextmanager
    def among(self, pods: Collection[Pod]) -> Iterator[None]:
        """Let only these be uncertain, within the block: all others have landed where they are expected."""
        before = self._uncertain
        with ExitStack() as undo:
            for other, names in self._came.items():
                if other not in pods:
                    for name in names:
                        self._exchange(undo, self._vacated, name, None, self._coming(other))
            self._uncertain = pods
            undo.callback(setattr, self, "_uncertain", before)
            yield

    def may_land(self, pod: Pod, nodes: Sequence[str]) -> None:
        """Count the replacement of a pod on these nodes too, from when it is next expected somewhere."""
        self._wide[pod] = tuple(nodes)

    def _between(self, pod: Pod, moment: Moment) -> Answer:
        fullest = self._ask(pod, self._crowded, moment)
        if not fullest.known or fullest.reason or fullest.sampled:
            return fullest
        emptiest = self._ask(pod, self._vacated, moment)
        if not emptiest.known or emptiest.sampled:
            return emptiest
        coming = self._simulation.replacement(pod).pod or pod
        peak = self._crowded.peaks(coming)
        peaks = {name: peak for names in self._came.values() for name in names} if peak else {}
        wavering = self._crowded.weight(coming, FIT) if self._crowded.wavers(coming) else 0
        return Answer(nodes=tuple(Extremes(emptiest, fullest, self._swings(coming), peaks, wavering).winners()))

    def _ask(self, pod: Pod, phase: Phase, moment: Moment) -> Answer:
        coming = self._simulation.replacement(pod)
        if coming.pod is None:
            return Answer(unknown=coming.unknown)
        if not pod.active:
            return phase.ask(coming.pod, pod.node, None, None)
        gone = self._gone.get(pod)
        there = gone if phase is self._crowded else None
        ending = (gone or self._simulation.ending(pod)) if moment is Moment.AT_ONCE else None
        return phase.ask(coming.pod, pod.node, there if gone else pod, ending)

    def _swings(self, coming: Pod) -> dict[str, float]:
        weight = 100.0 * self._crowded.weight(coming, BALANCE)
        touched = {each.node for each in self._gone} | {name for names in self._came.values() for name in names}
        found = {}
        for name in touched:
            if self._cluster.node(name):
                less, more = self._vacated.shares(name), self._crowded.shares(name)
                found[name] = weight * max((abs(more.get(each, 0.0) - less.get(each, 0.0)) for each in more), default=0)
        return found

    def _cases(self, pod: Pod) -> list[tuple[Case, ...]] | None:
        """Return what pods that are tied to this one may do, together; None if that is too much to try.

        Raises:
            UnknownPlacementError: whether they are tied hangs on something that was not read.
        """
        others = [each for each in {**self._gone, **self._came} if self._uncertain is None or each in self._uncertain]
        choices = [cases for other in others if (cases := self._choices(pod, other))]
        count = 1
        for each in choices:
            count *= len(each)
            if count > _MOST_CASES:
                return None
        return list(product(*choices))

    def _choices(self, pod: Pod, other: Pod) -> list[Case]:
        if other is pod:
            return []
        here, there = self._newcomer(pod), self._newcomer(other)
        by_terms = self._ties.by_terms(here, there)
        if not by_terms and not self._together.spread(here, there):
            return []
        places = ("", *self._came.get(other, ()))
        if not by_terms:  # spreading does not count pods that terminate
            return [(other, Old.RUNS, ""), *((other, Old.NOT_RUNNING, place) for place in places)]
        late = Moment.AT_ONCE not in self._simulation.replacement(other).moments
        ending = places[:1] if late else places
        return [
            (other, Old.RUNS, ""),
            *((other, Old.ENDS, place) for place in ending),
            *((other, Old.GONE, place) for place in places),
        ]

    @contextmanager
    def _supposed(self, case: Sequence[Case]) -> Iterator[None]:
        """Let tied pods do what a case says, within the block."""
        with ExitStack() as undo:
            for other, old, place in case:
                self._suppose(undo, other, place)
                if old is not Old.NOT_RUNNING and other in self._gone:
                    ending = self._gone[other]
                    there = {Old.RUNS: other, Old.ENDS: ending, Old.GONE: None}[old]
                    self._exchange(undo, self._vacated, other.node, None, there)
                    self._exchange(undo, self._crowded, other.node, ending, there)
            yield

    def _suppose(self, undo: ExitStack, other: Pod, place: str) -> None:
        coming = self._coming(other)
        for name in self._came.get(other, ()):
            if name != place:
                self._exchange(undo, self._crowded, name, coming, None)
        if place:
            self._exchange(undo, self._vacated, place, None, coming)

    def _exchange(self, undo: ExitStack, phase: Phase, node: str, goes: Pod | None, comes: Pod | None) -> None:
        phase.exchange(node, goes, comes)
        undo.callback(phase.exchange, node, comes, goes)

    @contextmanager
    def _without(self, pod: Pod) -> Iterator[None]:
        """Let the replacement of the pod itself be nowhere, within the block; and ask under the supposed taints."""
        with ExitStack() as undo:
            self._suppose_taints()
            self._suppose(undo, pod, "")
            yield

    def _suppose_taints(self) -> None:
        if self._taints is not self._simulation.taints:
            self._taints = self._simulation.taints
            for phase in (self._vacated, self._crowded):
                phase.suppose(self._taints)

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod as one that goes (1), or as running again (-1)."""
        if not pod.active or not pod.node:
            return
        if sign > 0:
            self._gone[pod] = self._simulation.ending(pod)
            self._crowded.exchange(pod.node, pod, self._gone[pod])
            self._vacated.exchange(pod.node, pod, None)
        else:
            self._crowded.exchange(pod.node, self._gone.pop(pod), pod)
            self._vacated.exchange(pod.node, None, pod)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count the replacement of a pod on all nodes where it may land (1), or no longer (-1)."""
        if sign > 0:
            self._came[pod] = tuple(dict.fromkeys((node.name, *self._wide.get(pod, ()))))
        for name in self._came[pod]:
            self._crowded.exchange(name, *((None, self._coming(pod)) if sign > 0 else (self._coming(pod), None)))
        if sign < 0:
            del self._came[pod]

    def _coming(self, pod: Pod) -> Pod:
        return self._simulation.replacement(pod).pod or pod

    def _newcomer(self, pod: Pod) -> Newcomer:
        return Newcomer(self._coming(pod), pod)
