"""Where replacements land if they do not come in the order of the evictions.

A plan asks where each replacement goes as if they came in turn.  But one that waits for the end of its old pod (of a
StatefulSet, for example) comes after replacements of pods that are evicted later, and of several that are made at once
the scheduler may get a later one first.  So once it is known which pods go, a few orders are played, in each of which
every replacement lands and the next one meets it:

- those made at once come in turn, or in reverse, while all old pods still end; then those that wait, once all are gone
- the same, but those that wait come in reverse, each when its own old pod is gone and the others still end
- all come once all old pods are gone, in turn and in reverse

Then each is asked about as the last to come: the others are where they are expected.  That is six questions for each
pod.  A Job may wait or not, so it waits in some of the orders.  Replacements of one ReplicaSet or Job are all alike:
nobody can tell whose one is, so they keep their order among each other.

There are more orders than these, so a replacement may still land elsewhere.  What was foreseen in turn is always named.

Example: n2 has the most room, n3 a little less.  db-0, of a StatefulSet, is evicted first, then web-1, of a Deployment.
In turn db-0 lands on n2.  But db-0 waits until its old pod is gone, and web-1 comes meanwhile, and lands on n2; then n3
has more room for db-0.  So n2 and n3 are named for db-0.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.phase import Phase
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.replacement import Moment

#: Pods, each with the point in time at which its replacement comes.
_Order = tuple[tuple[Pod, Phase], ...]


class OtherOrders:
    """Knows what was foreseen in turn, and plays other orders: get it with `cluster.index(OtherOrders)`.

    It asks nothing before it is to play.

    Attributes:
        questions: how often the scheduler was asked.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.questions = 0
        self._cluster = cluster
        self._in_turn: dict[Pod, Sequence[str]] = {}

    def note(self, pod: Pod, nodes: Sequence[str]) -> None:
        """Remember where the replacement of a pod was foreseen in turn; a pod that is noted is played if it goes.

        Where the scheduler scores a part of the nodes only, a pod is better not noted: the answer is wide already.
        """
        self._in_turn[pod] = nodes

    def landings(self, expected: Mapping[Pod, str]) -> dict[Pod, set[str]]:
        """Return for each noted pod of these all nodes where its replacement may land; to be asked when all are gone.

        For one that goes alone that is what was foreseen in turn: there is no other order.

        Args:
            expected: the pods that went, in the order of their evictions, with the nodes that the plan counts on.
                Those that were not noted are taken to be there from the start.
        """
        found = {pod: set(self._in_turn[pod]) for pod in expected if pod in self._in_turn}
        if len(expected) < 2 or not found:  # noqa: PLR2004  an order takes two
            return found
        simulation = self._cluster.index(Simulation)
        with ExitStack() as undo:
            for pod, node in expected.items():
                if pod not in found:
                    _land(undo, simulation, pod, node)
            for order in dict.fromkeys(_orders(simulation, tuple(found))):
                for pod, nodes in self._played(simulation, order, expected):
                    found[pod].update(nodes)
            for pod, nodes in self._last(simulation, {pod: expected[pod] for pod in found}):
                found[pod].update(nodes)
        return found

    def _played(
        self, simulation: Simulation, order: _Order, expected: Mapping[Pod, str]
    ) -> Iterator[tuple[Pod, Sequence[str]]]:
        """Let replacements come in an order, and yield where each may land; on the expected node if that is one."""
        with ExitStack() as undo:
            for pod, phase in order:
                answer = self._asked(simulation, pod, phase)
                yield pod, answer.likely
                if not answer.reason:
                    likely = answer.likely or (expected[pod],)
                    _land(undo, simulation, pod, expected[pod] if expected[pod] in likely else likely[0])

    def _last(self, simulation: Simulation, expected: Mapping[Pod, str]) -> Iterator[tuple[Pod, Sequence[str]]]:
        """Yield where each may land when all others have landed where they are expected."""
        later = simulation.phases[-1]
        with ExitStack() as undo:
            for pod, node in expected.items():
                _land(undo, simulation, pod, node)
            for pod in {_identity(simulation, pod): pod for pod in expected}.values():  # of pods alike the last one
                node, coming = expected[pod], _coming(simulation, pod)
                later.exchange(node, coming, None)
                yield pod, self._asked(simulation, pod, later).likely
                later.exchange(node, None, coming)

    def _asked(self, simulation: Simulation, pod: Pod, phase: Phase) -> Answer:
        """Ask about the earliest moment while old pods end, and about the last one when they are gone."""
        self.questions += 1
        moments = simulation.replacement(pod).moments
        return simulation.at(pod, phase, moments[0 if phase is simulation.phases[0] else -1])


def _orders(simulation: Simulation, pods: Sequence[Pod]) -> Iterator[_Order]:
    soon, later = simulation.phases[0], simulation.phases[-1]
    prompt, patient = _parted(simulation, pods, Moment.AT_ONCE)
    may_wait, sure = _parted(simulation, pods, Moment.AFTERWARDS)
    yield _at(soon, sure) + _at(later, may_wait)
    yield _at(soon, _reversed(simulation, prompt)) + _at(later, _reversed(simulation, patient))
    yield _at(soon, prompt) + _at(soon, _reversed(simulation, patient))
    yield _at(later, pods)
    yield _at(later, _reversed(simulation, pods))


def _parted(simulation: Simulation, pods: Sequence[Pod], moment: Moment) -> tuple[list[Pod], list[Pod]]:
    """Return those that may be replaced at this moment, and the others."""
    parts: tuple[list[Pod], list[Pod]] = ([], [])
    for pod in pods:
        parts[moment not in simulation.replacement(pod).moments].append(pod)
    return parts


def _reversed(simulation: Simulation, pods: Sequence[Pod]) -> list[Pod]:
    """Return pods in reverse; among those whose replacements are alike the first one still comes first."""
    alike: dict[object, list[Pod]] = {}
    for pod in pods:
        alike.setdefault(_identity(simulation, pod), []).append(pod)
    waiting = {identity: iter(each) for identity, each in alike.items()}
    return [next(waiting[_identity(simulation, pod)]) for pod in reversed(pods)]


def _identity(simulation: Simulation, pod: Pod) -> object:
    """Return what tells a replacement from others: its owner, or the pod where the replacement keeps its name."""
    keeps = _coming(simulation, pod).name == pod.name
    return pod if keeps or pod.controller is None else pod.controller.uid


def _at(phase: Phase, pods: Sequence[Pod]) -> _Order:
    return tuple((pod, phase) for pod in pods)


def _land(undo: ExitStack, simulation: Simulation, pod: Pod, node: str) -> None:
    """Let a replacement be on a node at all points in time that follow."""
    coming = _coming(simulation, pod)
    for phase in simulation.phases:
        phase.exchange(node, None, coming)
        undo.callback(phase.exchange, node, coming, None)


def _coming(simulation: Simulation, pod: Pod) -> Pod:
    return simulation.replacement(pod).pod or pod
