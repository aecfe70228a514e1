"""Whether the replacement of a pod finds a node for certain: in whatever order others come, wherever they land.

When several pods are evicted, nobody knows which replacement the scheduler sees first, nor which of equal nodes it
takes.  Room that one finds may be gone when it is its turn.  So a pod may go only if there is room at the worst:

1. Its replacement has a node while no other has come and all pods that were evicted still have their room; as they go,
   there is only more.  If it has to be near certain pods, and its old pod may be one of them, the node has to be one
   that it may go to also when the old pod is gone.
2. Whatever the others take first, one of these nodes is left (see `rebalancer.scheduling.crowd`).  The others are the
   replacements of all pods that went in this cycle, and pods that the cluster makes or places anyway.
3. The same still holds for each of the pods that were allowed to go before it.

Where a rule between pods reaches further than one node (see `rebalancer.scheduling.ties`), that is not known.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.scheduling.crowd import Crowd, Spare
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.simulator.state import HOSTNAME
from rebalancer.scheduling.ties import Newcomer, Tie, Ties


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a replacement may find no node; one of these.

    Attributes:
        unschedulable: it fits nowhere, in the scheduler's words.
        unknown: why the scheduler's answer is not known.
        tied: a pod that comes as well, to which a rule between pods ties it.
        crowd: how many others may come before it.
        nodes: with a crowd, how many nodes have room as long as none has.
        ousted: a pod evicted before, whose replacement would not be certain to find room any more.
    """

    unschedulable: str = ""
    unknown: str = ""
    tied: str = ""
    crowd: int = 0
    nodes: int = 0
    ousted: str = ""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A newcomer with the nodes that it could go to, if it came first: how many, and by name."""

    newcomer: Newcomer
    feasible: int
    names: tuple[str, ...]


class CertainRoom:
    """Answers for one cluster, which it follows: get it with `cluster.index(CertainRoom)`."""

    def __init__(self, cluster: Cluster) -> None:
        """Start from the cluster as it is now.

        Raises:
            ConfigurationError: the scheduler's configuration cannot be read.
        """
        self._simulation = cluster.index(Simulation)
        names = [node.labels[HOSTNAME] for node in cluster.snapshot.nodes if HOSTNAME in node.labels]
        self._ties = Ties(cluster.snapshot.namespaces, hosts_differ=len(set(names)) == len(names))
        self._anyway = tuple(self._coming_anyway(cluster.snapshot.pods))
        self._gone: dict[Pod, Newcomer] = {}
        self._claims: dict[Pod, _Claim] = {}
        self._spares: dict[tuple[int, tuple[str, ...]], tuple[PodSpec, list[Spare]]] = {}
        for pod in cluster.snapshot.pods:
            if not cluster.contains(pod):
                self.left(pod, 1)

    def doubt(self, pod: Pod) -> Doubt | None:
        """Return why the replacement may find no node if the pod went now, after those that went; None if it does."""
        self._claims.pop(pod, None)
        made = self._simulation.replacement(pod)
        if made.pod is None:
            return Doubt(unknown=made.unknown)
        answers = [self._simulation.before_others(pod)]
        if made.pod.spec.placement.affinity:
            answers.append(self._simulation.before_others(pod, gone=True))
        for answer in answers:
            if answer.reason or answer.unknown:
                return Doubt(unschedulable=answer.reason, unknown="" if answer.reason else answer.unknown)
        claim = _claim(Newcomer(made.pod, pod), answers)
        doubt = self._crowded(claim) or self._ousting(claim)
        if doubt is None:
            self._claims[pod] = claim
        return doubt

    def _crowded(self, claim: _Claim) -> Doubt | None:
        others = self._others(claim)
        ties = [self._ties.of(each, claim.newcomer) for each in others]
        if Tie.ANYWHERE in ties:
            return Doubt(tied=str(others[ties.index(Tie.ANYWHERE)].old))
        enough = self._leaves_room(_crowd(others), claim, ties.count(Tie.NODE))
        return None if enough else Doubt(crowd=len(others), nodes=claim.feasible)

    def _ousting(self, claim: _Claim) -> Doubt | None:
        """Return whose room a claim would make uncertain."""
        crowd = _crowd((*self._others(claim), claim.newcomer))
        known: dict[object, bool] = {}
        for pod in self._gone:
            earlier = self._claims.get(pod)
            if earlier is None:
                continue
            tie = self._ties.of(claim.newcomer, earlier.newcomer)
            alike = (id(earlier.newcomer.pod.spec), earlier.names, tie)
            if alike not in known:  # replicas are alike
                known[alike] = tie is Tie.ANYWHERE or not self._keeps_room(earlier, crowd, tie)
            if known[alike]:
                return Doubt(ousted=str(pod))
        return None

    def _keeps_room(self, earlier: _Claim, crowd: Crowd, tie: Tie) -> bool:
        if earlier.feasible > crowd.size:
            return True
        ties = Counter(self._ties.of(each, earlier.newcomer) for each in self._others(earlier))
        return self._leaves_room(crowd, earlier, ties[Tie.NODE] + (tie is Tie.NODE))

    def _leaves_room(self, crowd: Crowd, claim: _Claim, blocking: int) -> bool:
        # As a rule more nodes have room than others come, and nothing has to be counted.
        return claim.feasible > crowd.size or crowd.leaves_room(self._spare(claim), blocking)

    def _spare(self, claim: _Claim) -> list[Spare]:
        """Return what is left of the nodes of a claim; it stays as it is, since pods that went count as still there."""
        spec = claim.newcomer.pod.spec
        known = self._spares.get((id(spec), claim.names))
        if known is None:
            found: list[Spare] = [self._simulation.spare_before_others(name, spec.requests) for name in claim.names]
            known = self._spares[id(spec), claim.names] = (spec, found)  # keeps the spec alive
        return known[1]

    def _others(self, claim: _Claim) -> list[Newcomer]:
        return [each for each in (*self._anyway, *self._gone.values()) if each.old is not claim.newcomer.old]

    def left(self, pod: Pod, sign: int) -> None:
        """Expect the replacement of a pod that went (1), or no longer (-1)."""
        if sign > 0 and pod.active and pod.owners:
            self._gone[pod] = self._newcomer(pod)
        elif sign < 0:
            self._gone.pop(pod, None)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Do nothing: that a replacement is expected on one node does not make that certain."""

    def _newcomer(self, pod: Pod) -> Newcomer:
        made = self._simulation.replacement(pod)
        return Newcomer(made.pod or pod, pod, known=made.pod is not None)

    def _coming_anyway(self, pods: Iterable[Pod]) -> Iterator[Newcomer]:
        """Yield pods that wait for a node, and what comes in place of pods that go without us."""
        for pod in pods:
            if pod.active and not pod.node and not pod.spec.placement.gated:
                yield Newcomer(pod, pod)
            elif pod.active and pod.node and (pod.evacuating or (pod.terminating and self._comes_afterwards(pod))):
                yield self._newcomer(pod)

    def _comes_afterwards(self, pod: Pod) -> bool:
        made = self._simulation.replacement(pod)
        return made.pod is not None and Moment.AFTERWARDS in made.moments


def _claim(newcomer: Newcomer, answers: Sequence[Answer]) -> _Claim:
    """Return a claim on the nodes that all answers have."""
    if len(answers) == 1:
        return _Claim(newcomer, answers[0].feasible, answers[0].feasible_nodes())
    names = set.intersection(*(set(each.feasible_nodes()) for each in answers))
    return _Claim(newcomer, len(names), tuple(sorted(names)))


def _crowd(newcomers: Iterable[Newcomer]) -> Crowd:
    return Crowd(each.pod.spec.requests for each in newcomers)
