"""Where a replacement lands after ties: whichever of equal nodes the scheduler took for those that came before it.

Where several nodes win, a plan counts on one of them, and asks where the next replacement goes from there on.  But the
scheduler may have taken another.  So for the report the answer is widened: such an earlier replacement may be on any of
the nodes that were named for it.

- Where a rule ties it to the pod (they are spread together, or a term of pod affinity of one selects the other), each
  of its nodes is tried, up to 16 combinations.  Beyond that the pod may land on any node that has room for it.
- Where only room counts, it is worked out what others may do to each node (see `rebalancer.scheduling.scattered`).

Without an earlier tie the answer is that of the simulation.  Replacements are taken to come in turn, as there.

Example: n2, n3 and n4 are empty and equal, and the scheduler packs.  The first replacement goes to any of them, and
the plan counts on n2.  The second one goes where the first one is; to the plan that is n2, but it may be any of three.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.phase import Phase
from rebalancer.scheduling.scattered import Scattered, Winners
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.constraints import DefaultSelectors
from rebalancer.scheduling.simulator.plugin import UnknownPlacementError
from rebalancer.scheduling.ties import Newcomer, Tie, Ties, Together

#: At most so many things that tied pods may do are tried, together.
_MOST_CASES = 16

#: Pods, each on one node.
_Case = tuple[tuple[Pod, str], ...]


@dataclass(frozen=True, slots=True)
class _Tied:
    """A replacement that is expected on one node, and may be on others."""

    newcomer: Newcomer
    expected: str
    nodes: Sequence[str]


class AfterTies:
    """Answers for one cluster, which it follows: get it with `cluster.index(AfterTies)`."""

    def __init__(self, cluster: Cluster) -> None:
        """Start from the cluster as it is now; what is expected on a node by now is taken to be there.

        Raises:
            ConfigurationError: the scheduler's configuration cannot be read.
        """
        self._simulation = cluster.index(Simulation)
        self._ties = Ties(cluster.snapshot.namespaces, hosts_differ=False)
        self._together = Together(DefaultSelectors(self._simulation.companions))
        self._wide: dict[Pod, tuple[str, ...]] = {}
        self._tied: dict[Pod, _Tied] = {}
        self._rough: set[Pod] = set()
        self._fresh: set[Pod] = set()  # answers that nothing has changed since

    @property
    def tied(self) -> bool:
        """Whether some replacement may be elsewhere than where it is expected; else questions cost next to nothing."""
        return bool(self._tied)

    def may_land(self, pod: Pod) -> tuple[str, ...]:
        """Return the nodes where the replacement may land if the pod goes now, and remember them for those that follow.

        Empty where it lands nowhere, or where that is not known.
        """
        if pod not in self._fresh:
            self._rough.discard(pod)
            self._wide[pod] = self._ask(pod)
            self._fresh.add(pod)
        return self._wide[pod]

    def is_rough(self, pod: Pod) -> bool:
        """Return whether the last answer for a pod names all nodes with room, since too much was possible to try."""
        return pod in self._rough

    def uncertain_on(self, node: Node) -> Iterator[Pod]:
        """Yield the pods whose replacements are expected on a node, but may be elsewhere too."""
        return (pod for pod, tied in self._tied.items() if tied.expected == node.name)

    def _ask(self, pod: Pod) -> tuple[str, ...]:
        answer = self._simulation.ask(pod)
        if not answer.nodes or not self._tied or answer.sampled:
            return answer.likely
        found = set(answer.nodes)
        for phase in self._simulation.phases:
            found.update(self._in_phase(pod, phase))
        return tuple(sorted(found))

    def _in_phase(self, pod: Pod, phase: Phase) -> Iterator[str]:
        there = {old: tied for old, tied in self._tied.items() if phase in self._simulation.phases_with(old)}
        coming = Newcomer(self._coming(pod), pod)
        bound = [tied for tied in there.values() if self._binds(tied.newcomer, coming)]
        free = [self._scattered(tied, coming) for tied in there.values() if tied not in bound]
        with ExitStack() as undo:
            for tied in there.values():
                _exchange(undo, phase, tied.expected, tied.newcomer.pod, None)
            for moment in self._simulation.replacement(pod).moments:
                ask = partial(self._simulation.at, pod, phase, moment)
                if prod(len(tied.nodes) for tied in bound) > _MOST_CASES:
                    self._rough.add(pod)
                    yield from ask().feasible_nodes()
                else:
                    asks = [partial(_asked, phase, case, ask) for case in _cases(bound)]
                    yield from Winners(phase, coming.pod, free).names(asks)

    def _binds(self, other: Newcomer, coming: Newcomer) -> bool:
        if self._ties.of(other, coming) is Tie.ANYWHERE or self._ties.by_terms(other, coming):
            return True
        try:
            return self._together.spread(coming, other)
        except UnknownPlacementError:
            return True

    def _scattered(self, tied: _Tied, coming: Newcomer) -> Scattered:
        blocks = self._ties.of(tied.newcomer, coming) is not Tie.ROOM
        return Scattered(tied.newcomer.pod, tied.nodes, blocks)

    def left(self, pod: Pod, sign: int) -> None:  # noqa: ARG002  the interface
        """Forget answers; the simulation follows by itself."""
        self._fresh.clear()

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Note a replacement that may land elsewhere too (1), or no longer (-1)."""
        self._fresh.clear()
        if sign < 0:
            self._tied.pop(pod, None)
            return
        names = sorted({node.name, *self._wide.get(pod, ())})
        if len(names) > 1:
            self._tied[pod] = _Tied(Newcomer(self._coming(pod), pod), node.name, names)

    def _coming(self, pod: Pod) -> Pod:
        return self._simulation.replacement(pod).pod or pod


def _cases(tied: Sequence[_Tied]) -> Iterator[_Case]:
    """Yield where each of them may be, together."""
    pods = [each.newcomer.pod for each in tied]
    for names in product(*(each.nodes for each in tied)):
        yield tuple(zip(pods, names, strict=True))


def _asked(phase: Phase, case: _Case, ask: Callable[[], Answer]) -> Answer:
    """Ask while some pods are on these nodes."""
    with ExitStack() as undo:
        for pod, name in case:
            _exchange(undo, phase, name, None, pod)
        return ask()


def _exchange(undo: ExitStack, phase: Phase, node: str, goes: Pod | None, comes: Pod | None) -> None:
    phase.exchange(node, goes, comes)
    undo.callback(phase.exchange, node, comes, goes)
