"""Whether the replacement of a pod finds a node for certain: in whatever order others come, wherever they land.

When several pods are evicted, nobody knows which replacement the scheduler sees first, nor which of equal nodes it
takes.  Room that one finds may be gone when it is its turn.  So a pod may go only if there is room at the worst:

1. Its replacement has a node while no other has come and all pods that were evicted still have their room; as they go,
   there is only more.  If it has to be near certain pods, and its old pod may be one of them, the node has to be one
   that it may go to also when the old pod is gone.
2. Whatever the others take first, one of these nodes is left (see `Crowd`).  The others are the replacements
   of all pods that went in this cycle, and pods that the cluster makes or places anyway.
3. The same still holds for each of the pods that were allowed to go before it.

Where a rule between pods reaches further than one node (see `Ties`), that is not known.

Step 2 in full: each other pod lands on one node, on any, and before the pod.  What they can do to it is counted:

1. On each node that has room for the pod, by how many others it takes to fill it: the largest ones first.
2. Others that may keep it from a node altogether take the nodes where most would be needed.
3. If the rest are fewer than it takes to fill all remaining nodes, one of these has room at the end.

Example: three nodes have room for the pod, and beside it for 0, 1 and 2 cores.  Five others of 1 core each want in:
they fill the first node with 1 pod, the second with 2 and the third with 3.  That makes 6, and there are 5: the pod
finds room.  If one of the five had a port that the pod wants, it would take the third node; 4 are left for the first
two, which takes 3: nobody knows whether the pod finds room.

Rooms, ports, disks and rules between pods of one host concern only the node where the first one lands.  Other rules
between pods (required affinity, anti-affinity over zones, hard spreading, a claim that both use) may concern any node.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.placement import HostPort, PodAffinityTerm
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import PODS, Resources
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.plugins.node_ports import conflict
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.simulator.rules import condition_of
from rebalancer.scheduling.simulator.state import HOSTNAME
from rebalancer.scheduling.simulator.tally import MatchedPods

_HARD = "DoNotSchedule"


class Tie(IntEnum):
    """What a newcomer may do to a pod, from the mildest to the worst."""

    ROOM = 0  # takes what it requests of one node
    NODE = 1  # may keep the pod from one node altogether
    ANYWHERE = 2  # may keep the pod from any number of nodes


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A pod that comes, and the one in whose place it comes.

    Attributes:
        pod: as the scheduler gets it.
        old: the pod that goes for it; the same one where none goes.
        known: whether `pod` is what comes; if not, the old pod stands in for it.
    """

    pod: Pod
    old: Pod
    known: bool = True


class Ties:
    """Tells ties between newcomers to one cluster.

    Args:
        namespaces: labels by namespace; None if they were not read.
        hosts_differ: whether no two nodes have the same host name.
    """

    def __init__(self, namespaces: Mapping[str, Labels] | None, *, hosts_differ: bool) -> None:
        self._namespaces = namespaces
        self._hosts_differ = hosts_differ

    def of(self, first: Newcomer, then: Newcomer) -> Tie:
        """Return what the first newcomer may do to the other one if it comes before it."""
        if self._reaches_far(first, then):
            return Tie.ANYWHERE
        return Tie.NODE if not first.known or self._fills_a_node(first.pod, then.pod) else Tie.ROOM

    def _reaches_far(self, first: Newcomer, then: Newcomer) -> bool:
        one, other = first.pod, then.pod
        if {*one.claims, *one.own_claims} & {*other.claims, *other.own_claims} and one.namespace == other.namespace:
            return True
        if self._selected(other.spec.placement.affinity, other, first):
            return True
        if any(each.when_unsatisfiable == _HARD for each in other.spec.spread) and one.namespace == other.namespace:
            return _spread_with(other, first)
        return self._apart(one, other, near=False)

    def _fills_a_node(self, one: Pod, other: Pod) -> bool:
        ports = ((here, there) for here in _ports(one) for there in _ports(other))
        if any(conflict(here, there) for here, there in ports):
            return True
        if (one.spec.placement.disks or one.claims) and (other.spec.placement.disks or other.claims):
            return True  # disks that may not be shared, and the number of volumes that a node may have
        return self._apart(one, other, near=True)

    def _apart(self, one: Pod, other: Pod, *, near: bool) -> bool:
        """Return whether required anti-affinity of either selects the other, over hosts (near) or over more."""
        mine = [each for each in one.spec.anti_affinity if self._is_near(each) is near]
        theirs = [each for each in other.spec.anti_affinity if self._is_near(each) is near]
        return self._selected(mine, one, Newcomer(other, other)) or self._selected(theirs, other, Newcomer(one, one))

    def _is_near(self, term: PodAffinityTerm) -> bool:
        return self._hosts_differ and term.topology_key == HOSTNAME

    def _selected(self, terms: Iterable[PodAffinityTerm], pod: Pod, by: Newcomer) -> bool:
        return any(self._takes(term, pod.namespace, each) for term in terms for each in (by.pod, by.old))

    def _takes(self, term: PodAffinityTerm, namespace: str, pod: Pod) -> bool:
        return self._may_take(condition_of(term, namespace), pod)

    def _may_take(self, condition: MatchedPods, pod: Pod) -> bool:
        """Return whether a condition selects a pod, or may, since no labels of the pod's namespace are known."""
        known = (self._namespaces or {}).get(pod.namespace)
        unsure = known is None and condition.hangs_on_labels_of(pod.namespace, pod.labels)
        return unsure or condition.takes(pod.namespace, known or {}, pod.labels)


def _ports(pod: Pod) -> Sequence[HostPort]:
    placement = pod.spec.placement
    return (*placement.host_ports, *placement.sidecar_ports)


def _spread_with(pod: Pod, newcomer: Newcomer) -> bool:
    hard = [each.selector for each in pod.spec.spread if each.when_unsatisfiable == _HARD]
    labels = (newcomer.pod.labels, newcomer.old.labels)
    return any(selector.matches(each) for selector in hard if selector for each in labels)


#: By resource, what is left of one node once the pod has what it requests.
Spare = Mapping[str, int]


class Crowd:
    """Pods that may all come first, summed up.

    Args:
        requests: what each requests.

    Attributes:
        size: how many they are.
    """

    def __init__(self, requests: Iterable[Resources]) -> None:
        self._requests = [{PODS: 1, **each} for each in requests]
        self.size = len(self._requests)
        self._sums: dict[str, list[int]] = {}

    def leaves_room(self, nodes: Sequence[Spare], blocking: int = 0) -> bool:
        """Return whether one of these nodes has room for the pod at the end.

        Args:
            nodes: the nodes that have room for the pod before the others come.
            blocking: how many of the others may keep the pod from a node altogether.
        """
        if len(nodes) > self.size:
            return True
        needed = sorted(self._needed(each) for each in nodes)
        return sum(needed[: max(len(needed) - blocking, 0)]) > self.size - blocking

    def _needed(self, spare: Spare) -> int:
        """Return how many others it takes to fill a node, the largest first; more than there are if they cannot."""
        return min(bisect_right(self._largest(name), amount) + 1 for name, amount in spare.items())

    def _largest(self, name: str) -> list[int]:
        """Return what the largest request of a resource is, the largest two together, and so on."""
        if name not in self._sums:
            amounts = sorted((each.get(name, 0) for each in self._requests), reverse=True)
            self._sums[name] = list(accumulate(amounts))
        return self._sums[name]


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
