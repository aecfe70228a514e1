"""Emptying and compaction: take all pods off nodes, each node as a whole or not at all (docs/compaction.md).

A node is emptied only if every pod that keeps it busy may go, all of them together, and has a destination; only then
the first pod is evicted.  Emptying takes pods off idle nodes.  In compaction all nodes may be candidates; one is not
emptied if a replacement of this cycle runs there, or may run there.

An example: thresholds are 30 % of cpu, ceilings 70 %.  n1 uses 10 % by one pod, n2 20 % by two, n3 25 % by three, so
all three are candidates.  n1 is first; the scheduler would put its pod on n3, which is at 35 % then.  n2 is next; its
pods go to n3 as well (55 %).  n3 has received pods and stays.  Two nodes of three are empty after three evictions.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from rebalancer.balancing.candidates import Selection, occupants
from rebalancer.balancing.cause_details import underutilized, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.steering.foresight import Avoid, Foresight, avoiding_others, takes_pods
from rebalancer.balancing.steering.steered import ELSEWHERE, mostly_elsewhere
from rebalancer.balancing.utilization import TOLERANCE, NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.cluster.resources import PODS, Resources, add
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.evict import cheapest_first
from rebalancer.eviction.steering import Move, Steer, Wave
from rebalancer.eviction.verdict import Refused, Unknown, Verdict, refused
from rebalancer.scheduling.eligibility import EligibleNodes

_Key = tuple[str, Owner | None]


def _key(pod: Pod) -> _Key:
    return (pod.namespace, pod.controller)


#: One pod that has to stay on its node, and so keeps all others there; and why it stays.
Kept = tuple[Pod, Refused]

_GROWTH = (1, 2, 4, 8, 16)


def by_effort(cluster: Cluster, nodes: Iterable[NodeUtilization]) -> list[NodeUtilization]:
    """Return nodes in the order in which they are emptied: those with the fewest pods first, then the emptiest."""
    return sorted(nodes, key=lambda each: (len(occupants(cluster, each.node)), each.fullness, each.node.name))


class Emptying:
    """Takes the pods off nodes that are nearly idle."""

    #: Whether what may happen before a pod goes is looked at, too.
    in_worlds = True

    def __init__(self, selection: Selection, destinations: Destinations, thresholds: Percentages) -> None:
        self.selection = selection  # which pods may be moved; a node with any other pod is left alone
        self.cluster, self.evict, self.usage = selection.cluster, selection.evict, selection.usage
        self.destinations = destinations  # the nodes that may get pods
        self.thresholds = thresholds  # at or below these nodes are emptied; the reasons show them
        self._is_over = False

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Empty nodes; for each node that is left alone, one refusal names the pod that keeps it."""
        for source in by_effort(self.cluster, sources):
            if not self._is_over and (pods := cheapest_first(occupants(self.cluster, source.node))):
                self._leave(source, self._emptied(source, pods))

    def _leave(self, source: NodeUtilization, kept: Kept | None) -> None:
        if kept:
            pod, refusal = kept
            keeping = Refused(refusal.cause.with_details(keeps_node=source.node.name))
            self.evict.refuse(pod, underutilized(source, self.thresholds), keeping)
            # The nodes that follow have as many pods or more: the limit would stop them, too.
            self._is_over = refusal.cause.code is Code.TOTAL_LIMIT

    def _emptied(self, source: NodeUtilization, pods: Sequence[Pod]) -> Kept | None:
        """Evict these pods and return None; if one of them may not go, evict none, and return it with the reason."""
        if kept := self.selection.first_immovable(pods) or self.evict.first_refusal(pods):
            return kept
        # All destinations are found before the first pod goes; a pod that stays is not expected there any more.
        with self.cluster.scope() as attempt:
            reason = underutilized(source, self.thresholds)
            moves = self._moves(source, self.usage.largest_first(source.node, pods), reason)
            if isinstance(moves, tuple):
                return moves
            gone = self._evict_all(sorted(moves, key=lambda each: pods.index(each.pod)))
            if len(gone) == len(pods):
                attempt.keep()
                return None
        for move, _ in gone:
            self.cluster.place(move.pod, self.destinations.known[move.expected].node)
        return None

    def _moves(self, source: NodeUtilization, pods: Iterable[Pod], reason: Cause) -> list[Move] | Kept:
        """Return a move for each pod, in their order, or the first one that has nowhere to go.

        From here on each one is expected where it would land, in the present scope.
        """
        moves: list[Move] = []
        for pod in pods:
            found = self.destinations.landing(pod, lambda: self.in_worlds)
            if isinstance(found, Refused):
                return pod, found
            node, likely, shares = found
            usage = self.usage.of_pod(pod)
            arrival = self.destinations.expect(pod, node, self.thresholds)
            because = with_pod_gone(reason, source.points(usage)).with_details(lands_on=arrival)
            moves.append(Move(pod, node.name, likely, because, usage, shares))
        return moves

    def _evict_all(self, moves: Iterable[Move]) -> list[tuple[Move, Verdict]]:
        """Ask for these evictions, and return those whose pods have gone."""
        gone: list[tuple[Move, Verdict]] = []
        for move in moves:
            verdict = self.evict(move.pod, move.because, move.destination)
            if not verdict.gone:
                # Only the server can still refuse: then the node is not emptied, and its other pods stay.
                break
            gone.append((move, verdict))
        return gone


class NodesInUse:
    """The nodes with pods that would have to move, and whether one of them may be emptied.

    Of what they have allocatable, by resource, no pod may request the percentage to keep free.  The label names a
    node's group, of which so many nodes stay in use; nodes without it are not emptied.  Without a label all may be.
    """

    def __init__(self, cluster: Cluster, keep_free: Percentages, group_label: str, keep_nodes: int) -> None:
        self._cluster = cluster
        self._keep_free, self._group_label, self._keep_nodes = keep_free, group_label, keep_nodes
        self.nodes = {node.name: node for node in cluster.nodes if occupants(cluster, node)}  # by name

    def candidates(self, nodes: Iterable[NodeUtilization]) -> list[NodeUtilization]:
        """Return the nodes that could be emptied and removed: those with the fewest pods first, then the emptiest."""
        in_use = self.nodes.keys() - self._cluster.awaiting
        used = [each for each in nodes if each.node.name in in_use and not each.node.keeping]
        able = [each for each in used if not self._group_label or self._group_label in each.node.labels]
        return by_effort(self._cluster, able)

    def refusal(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        """Return why a node has to stay in use; None if it may be emptied of these pods."""
        return self._too_few_of_group(node) or self._too_little_free(node, pods)

    def _too_few_of_group(self, node: Node) -> Refused | None:
        label, keep = self._group_label, self._keep_nodes
        if not label:
            return None
        group = node.labels[label]
        staying = (each for each in self.nodes.values() if each is node or each.name not in self._cluster.held)
        count = sum(each.labels.get(label) == group for each in staying)
        return refused(Code.NODE_GROUP, label=label, group=group, nodes=count, keep=keep) if count <= keep else None

    def _too_little_free(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        kept = [each for each in self.nodes.values() if each.name != node.name and self._cluster.receives(each)]
        coming = [{**pod.spec.requests, PODS: 1} for pod in pods]
        for name, percent in sorted(self._keep_free.items()):
            offered = sum(each.allocatable.get(name, 0) for each in kept)
            free = sum(self._cluster.free(each)(name) for each in kept) - sum(each.get(name, 0) for each in coming)
            share = free / offered * 100 if offered else 0.0
            if share < percent - TOLERANCE:
                return refused(Code.KEEP_FREE, resource=name, free=max(share, 0.0), keep=percent)
        return None


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to empty a node."""

    barred: Collection[str]  # on which nodes none of its pods may land
    # On which nodes they should land, any of them; empty if that is the scheduler's business.
    destinations: tuple[str, ...] = ()
    avoid: Avoid = field(default_factory=dict)  # by name, how many soft taints nodes carry meanwhile


class SteeredPlacement:
    """Sends the pods of a node where they should go, as far as the scheduler follows: a few nodes receive.

    All others are avoided: with two soft taints the nodes that are empty or about to be, with one the others; if that
    is not enough, since siblings or affinities outweigh one taint, all with two.  At first as few receive as have room
    for all pods; if the scheduler does not place all pods well there, twice as many, and so on up to sixteen times.
    What cannot be emptied so is tried again at the end, with all nodes in use.

    An example: n1 is to be emptied of 15 points.  n5 has room for 10 points, n4 for 20, n3 and n2 for 30.  The pods may
    go to n5 and n4, while n1 has two soft taints, n2 and n3 one each.  If the scheduler would fill n5 above its
    ceiling, they may go to n5, n4, n3 and n2, and only n1 is avoided.

    Those that have received pods already come first, then those that are not to be emptied, the fullest one first, and
    then those that would be emptied last; nodes that others have given soft taints never receive.
    """

    def __init__(
        self,
        cluster: Cluster,
        used: Iterable[NodeUtilization],  # the nodes in use
        candidates: Sequence[NodeUtilization],  # those to be emptied, in this order
        destinations: Destinations,
        ceilings: Percentages,
        steer: Steer,
    ) -> None:
        self._open = [node.name for node in cluster.nodes if not node.unschedulable]
        emptied = {each.node.name for each in candidates}
        others = [each for each in used if each.node.name not in emptied]
        fullest = sorted(others, key=lambda each: (-each.fullness, each.node.name))
        last = [each for each in reversed(candidates) if not each.node.unschedulable]
        self._takers = [each.node for each in (*fullest, *last) if takes_pods(each.node)]
        self._destinations = destinations
        self._ceilings = ceilings
        self.steer, self.foresight = steer, Foresight(cluster, steer.keys)
        self._replicas: dict[_Key, Counter[str]] = {}  # how many pods of each owner are on each node
        for pod in cluster.pods():
            self._count(pod, pod.node, 1)
        cluster.follow(self)

    def of(
        self, node: Node, usage: Sequence[Resources], empty: Collection[str], received: Collection[str], *, wide: bool
    ) -> Iterator[Choice]:
        """Yield choices to empty a node of pods with this usage, the largest first; few destinations unless wide."""
        hot = frozenset((*empty, node.name))
        ranked = sorted(self._takers, key=lambda each: each.name not in received)
        others = [self._destinations.known[each.name] for each in ranked if each.name not in hot]
        able = [each for each in others if each.passed(usage[0], self._ceilings) is None]
        names = tuple(each.node.name for each in able)
        if wide:
            yield Choice(hot, names, avoiding_others(self._open, names, hot))
            return
        least = self._enough(able, usage)
        for count in sorted({least * each for each in _GROWTH if least * each < len(able)}):
            chosen = names[:count]
            for most in (hot, None):
                avoid = avoiding_others(self._open, chosen, most)
                yield Choice({*hot, *avoid}, chosen, avoid)

    def objection(self, node: Node, moves: Sequence[Move]) -> Kept | None:
        """Return why these moves off a node must not be: all pods of an owner would come from several nodes to one."""
        expected: dict[_Key, set[str]] = {}
        for move in moves:
            expected.setdefault(_key(move.pod), set()).add(move.expected)
        for move in moves:
            if move.pod.controller and self._gathers(node, _key(move.pod), expected[_key(move.pod)]):
                return move.pod, refused(Code.NO_DESTINATION, gathers=move.expected)
        return None

    def _gathers(self, node: Node, owner: _Key, expected: set[str]) -> bool:
        now = {name for name, count in self._replicas.get(owner, Counter()).items() if count > 0}
        return len(now) > 1 and len((now - {node.name}) | expected) == 1

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that went, or is back."""
        self._count(pod, pod.node, -sign)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected on a node, or is not any more."""
        self._count(pod, node.name, sign)

    def _count(self, pod: Pod, name: str, sign: int) -> None:
        if pod.active and not pod.terminating:
            self._replicas.setdefault(_key(pod), Counter())[name] += sign

    def _enough(self, able: Sequence[NodeUtilization], usage: Sequence[Resources]) -> int:
        """Return how many of the first nodes have room for all these pods, added up; all, if that is not enough."""
        wanted: dict[str, int] = {}
        for amounts in usage:
            add(wanted, amounts)
        room: dict[str, int] = {}
        for count, each in enumerate(able, start=1):
            add(room, each.headroom(self._ceilings))
            if all(amount >= wanted.get(name, 0) for name, amount in room.items()):
                return count
        return len(able)


class Compaction(Emptying):
    """Empties nodes onto those that stay in use, steered or not."""

    in_worlds = False

    def __init__(
        self,
        selection: Selection,
        destinations: Destinations,
        thresholds: Percentages,
        in_use: NodesInUse,
        steered: SteeredPlacement | None,  # where pods may land; None: the scheduler places replacements as it likes
    ) -> None:
        super().__init__(selection, destinations, thresholds)
        self.in_use, self.steered = in_use, steered
        # Carries the evictions of a node out as a wave; without steering no node is marked.
        self.steer = steered.steer if steered else Steer(0.0, ("", ""))
        self._received: set[str] = set()
        self._closed: set[str] = set()  # nodes that take no pods any more
        self._elsewhere = 0

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Empty the candidates in order; for each that is left alone, one refusal names the pod that keeps it."""
        try:
            # To few nodes first; what cannot be emptied so is tried again with all.
            for wide in (False, True) if self.steered else (True,):
                again: list[NodeUtilization] = []
                for source in sources:
                    if self._is_over:
                        return
                    kept = self._tried(source, wide=wide)
                    found = kept and kept[1].cause
                    if found and found.code is Code.NO_DESTINATION and "unknown" not in found.details and not wide:
                        again.append(source)
                    else:
                        self._leave(source, kept)
                sources = again
        finally:
            self.steer.end()

    def _tried(self, source: NodeUtilization, *, wide: bool) -> Kept | None:
        """Empty a node if it can be, and return None; if one of its pods may not go, evict none, and return why."""
        if source.node.name in self._received:
            return None
        pods = self.usage.largest_first(source.node, occupants(self.cluster, source.node))
        if kept := self._kept(source.node, pods):
            return kept
        while isinstance(found := self._first_wave(source, pods, wide=wide), Wave):
            if not (closed := self.steer.closed(found)):
                self._make(source.node, found)
                return None
            self._closed |= closed  # planned anew without these nodes
        return found

    def _first_wave(self, source: NodeUtilization, pods: Sequence[Pod], *, wide: bool) -> Wave | Kept:
        """Return the moves that empty a node, to the first choice of receivers that will do, or why it keeps a pod."""
        closed, in_use = self.cluster.held | self._closed, self.in_use.nodes
        # On a node that is empty, or about to be, no pod may land, nor on one that takes none any more.
        empty = {node.name for node in self.cluster.nodes if node.name not in in_use or node.name in closed}
        choices: Iterable[Choice] = (Choice({*empty, source.node.name}),)
        if self.steered:
            choices = self.steered.of(source.node, [*map(self.usage.of_pod, pods)], empty, self._received, wide=wide)
        found: Wave | Kept = pods[0], refused(Code.NO_DESTINATION, nodes=0, obstacles=[])
        for choice in choices:
            found = self._planned(source, pods, choice)
            if isinstance(found, Wave) or "unknown" in found[1].cause.details:  # other receivers change nothing then
                break
        return found

    def _kept(self, node: Node, pods: Sequence[Pod]) -> Kept | None:
        """Return what keeps a node, whatever the destinations."""
        if refusal := self.in_use.refusal(node, pods):
            return pods[0], refusal
        holding = next((pod for pod in pods if pod.holding), None)
        if holding:
            return holding, refused(Code.HOLDS_NODE, annotation=holding.holding)
        return self.selection.first_immovable(pods) or self.evict.first_refusal(pods)

    def _planned(self, source: NodeUtilization, pods: Sequence[Pod], choice: Choice) -> Wave | Kept:
        self.destinations.emptied = choice.barred
        reason = underutilized(source, self.thresholds)
        # This is tried out in the cluster's picture of the future, and taken back.  For each pod all of the node have
        # gone or are about to, and the replacements of those before it are there.
        with self.steered.foresight.avoiding(choice.avoid) if self.steered else nullcontext(), self.cluster.scope():
            for pod in pods:
                self.cluster.remove(pod)
            found = self._moves(source, pods, reason)
        if isinstance(found, tuple):
            return found
        if self.steered and (objection := self.steered.objection(source.node, found)):
            return objection
        constraints = self.cluster.index(EligibleNodes).constraints
        for number, move in enumerate(found):
            fine = {move.expected, *constraints(move.pod.spec).suiting}
            found[number] = replace(move, likely=tuple(filter(fine.__contains__, choice.destinations)) or move.likely)
        return Wave(choice.avoid, tuple(found))

    def _make(self, node: Node, wave: Wave) -> None:
        self.steer.begin(wave)
        leaving = [(move, verdict) for move, verdict in self._evict_all(wave.moves) if verdict.leaving]
        placements = self.steer.settle(wave, leaving)
        # A replacement may be back on it, and a pod whose eviction is in doubt may not have gone.
        in_doubt = any(isinstance(verdict, Unknown) for _, verdict in leaving)
        if not (in_doubt or any(each.node == node.name for each in placements) or occupants(self.cluster, node)):
            self.in_use.nodes.pop(node.name, None)
            self.evict.emptied(node)
        for placement in placements:
            landed_on = self.cluster.node(placement.node) if placement.node else None
            if landed_on is not None:
                self.cluster.place(placement.move.pod, landed_on)
                self.in_use.nodes[landed_on.name] = landed_on
            if self.steered is None:  # nobody has looked: the pod may run on any that was likely
                self._received.update(placement.move.likely)
            elif placement.node:
                self._received.add(placement.node)
        self._elsewhere = self._elsewhere + 1 if mostly_elsewhere(placements) else 0
        if self._elsewhere == ELSEWHERE:
            self.evict.warn(cause(Code.LANDED_ELSEWHERE, waves=self._elsewhere))
            self._is_over = True
