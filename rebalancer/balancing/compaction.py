"""Compaction: which nodes are emptied, in which order, and how.

1. Candidates are the nodes at or below all thresholds that an autoscaler could remove: they have the label of node
   groups, if the policy names one, and no annotation that keeps them.  All nodes may be candidates.
2. Nodes with the fewest pods come first, then the emptiest, then by name.  A node on which a replacement of this cycle
   runs, or may run, is not emptied.
3. A node is left alone if too few nodes of its group or too little free room would be left, if one of its pods may not
   go, or if all of them may not go together.
4. Its pods, the largest first, are tried out together: each must have somewhere to go, in every answer of the
   scheduler.  Nodes that are empty, or were emptied, do not count.
5. Only then the first pod is evicted.

An example: thresholds are 30 % of cpu, ceilings 70 %.  n1 uses 10 % by one pod, n2 20 % by two, n3 25 % by three, so
all three are candidates.  n1 is first; the scheduler would put its pod on n3, which is at 35 % then.  n2 is next; its
pods go to n3 as well (55 %).  n3 has received pods and stays.  Two nodes of three are empty after three evictions.

What has to stay in use: room on the nodes that are left, nodes of each group, and what no autoscaler may remove.

An example: `keepFree` wants 20 % of cpu.  Three nodes of 10 cores are in use, with 4, 5 and 6 cores requested.  Without
the first one its 4 cores go to the other two: 15 of 20 cores are requested and 5 are free, which is 25 %.  Without the
second one nothing would be free of the last 10 cores: the second stays.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from rebalancer.balancing.candidates import Selection, occupants
from rebalancer.balancing.cause_details import keeping, underutilized, with_pod_gone
from rebalancer.balancing.destinations import Destinations
from rebalancer.balancing.measured_usage import MeasuredUsage
from rebalancer.balancing.placement_choice import Choice, Kept, SteeredPlacement, UnsteeredPlacement
from rebalancer.balancing.steering.steered import ELSEWHERE, mostly_elsewhere
from rebalancer.balancing.utilization import TOLERANCE, NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import PODS
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.steering import ActualPlacement, Move, Steer, Wave
from rebalancer.eviction.verdict import Refused, Verdict, refused


class NodesInUse:
    """The nodes with pods that would have to move, and whether one of them may be emptied.

    Args:
        cluster: the cluster.
        keep_free: by resource, which percentage of what the nodes in use have allocatable no pod may request.
        group_label: the label that names a node's group; nodes without it are not emptied.  Empty: all may be.
        keep_nodes: how many nodes of each group stay in use.
    """

    def __init__(self, cluster: Cluster, keep_free: Percentages, group_label: str, keep_nodes: int) -> None:
        self._cluster = cluster
        self._keep_free, self._group_label, self._keep_nodes = keep_free, group_label, keep_nodes
        self._nodes = {node.name: node for node in cluster.nodes if occupants(cluster, node)}

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def add(self, node: Node) -> None:
        """Note that a node is in use: a pod came to it."""
        self._nodes[node.name] = node

    def discard(self, node: Node) -> None:
        """Note that a node is empty."""
        self._nodes.pop(node.name, None)

    def candidates(self, nodes: Iterable[NodeUtilization]) -> list[NodeUtilization]:
        """Return the nodes that could be emptied and removed: those with the fewest pods first, then the emptiest."""
        able = [each for each in nodes if each.node.name in self and self._is_removable(each.node)]
        return sorted(able, key=lambda each: (len(occupants(self._cluster, each.node)), each.fullness, each.node.name))

    def _is_removable(self, node: Node) -> bool:
        return not node.keeping and (not self._group_label or self._group_label in node.labels)

    def refusal(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        """Return why a node has to stay in use; None if it may be emptied of these pods."""
        return self._too_few_of_group(node) or self._too_little_free(node, pods)

    def _too_few_of_group(self, node: Node) -> Refused | None:
        label, keep = self._group_label, self._keep_nodes
        if not label:
            return None
        group = node.labels[label]
        staying = (each for each in self._nodes.values() if each is node or each.name not in self._cluster.held)
        count = sum(each.labels.get(label) == group for each in staying)
        return refused(Code.NODE_GROUP, label=label, group=group, nodes=count, keep=keep) if count <= keep else None

    def _too_little_free(self, node: Node, pods: Iterable[Pod]) -> Refused | None:
        kept = [each for each in self._nodes.values() if each.name != node.name and self._cluster.receives(each)]
        coming = list(pods)
        for name, percent in sorted(self._keep_free.items()):
            offered = sum(each.allocatable.get(name, 0) for each in kept)
            free = sum(self._cluster.free(each)(name) for each in kept) - sum(_requested(pod, name) for pod in coming)
            share = free / offered * 100 if offered else 0.0
            if share < percent - TOLERANCE:
                return refused(Code.KEEP_FREE, resource=name, free=max(share, 0.0), keep=percent)
        return None


def _requested(pod: Pod, name: str) -> int:
    return 1 if name == PODS else pod.spec.requests.get(name, 0)


class Compaction:
    """Empties nodes.

    Args:
        cluster: the cluster.
        evict: whom to ask for evictions.
        steer: what carries the evictions of a node out as a wave.
        usage: what pods use.
        selection: which pods may be moved.
        destinations: the nodes in use that take pods, and all others.
        in_use: which nodes are in use, and which of them must stay so.
        choices: where pods may land.
        thresholds: at or below these percentages nodes are emptied; the reasons show them.
    """

    def __init__(
        self,
        cluster: Cluster,
        evict: Evict,
        steer: Steer,
        usage: MeasuredUsage,
        selection: Selection,
        destinations: Destinations,
        in_use: NodesInUse,
        choices: SteeredPlacement | UnsteeredPlacement,
        thresholds: Percentages,
    ) -> None:
        self._cluster = cluster
        self._evict = evict
        self._steer = steer
        self._usage = usage
        self._selection = selection
        self._destinations = destinations
        self._in_use = in_use
        self._choices = choices
        self._thresholds = thresholds
        self._received: set[str] = set()
        self._elsewhere = 0
        self._is_over = False

    def run(self, sources: Iterable[NodeUtilization]) -> None:
        """Empty nodes; for each node that is left alone, one refusal names the pod that keeps it.

        Args:
            sources: the candidates, in order.

        Raises:
            CycleOver: see `Evict`.
        """
        try:
            self._run(sources)
        finally:
            self._steer.end()

    def _run(self, sources: Iterable[NodeUtilization]) -> None:
        for wide in self._choices.rounds:
            again: list[NodeUtilization] = []
            for source in sources:
                if self._is_over:
                    return
                kept = self._tried(source, wide=wide)
                if kept and kept[1].cause.code is Code.NO_DESTINATION and wide != self._choices.rounds[-1]:
                    again.append(source)
                elif kept:
                    self._leave(source, *kept)
            sources = again

    def _leave(self, source: NodeUtilization, pod: Pod, refusal: Refused) -> None:
        self._evict.refuse(pod, underutilized(source, self._thresholds), keeping(source.node, refusal))
        # The nodes that follow have as many pods or more: the limit would stop them, too.
        self._is_over = self._is_over or refusal.cause.code is Code.TOTAL_LIMIT

    def _tried(self, source: NodeUtilization, *, wide: bool) -> Kept | None:
        """Empty a node if it can be, and return None; if one of its pods may not go, evict none, and return why."""
        if source.node.name in self._received:
            return None
        pods = self._usage.largest_first(occupants(self._cluster, source.node))
        kept = self._kept(source.node, pods)
        if kept:
            return kept
        usage = [self._usage.of_pod(pod) for pod in pods]
        for choice in self._choices.of(source.node, usage, self._empty_nodes(), wide=wide):
            kept = self._emptied(source, pods, choice)
            if not kept:
                return None
        return kept or (pods[0], refused(Code.NO_DESTINATION, nodes=0, obstacles=[]))

    def _emptied(self, source: NodeUtilization, pods: Sequence[Pod], choice: Choice) -> Kept | None:
        self._destinations.bar(choice.barred)
        with self._choices.avoiding(choice):
            found = self._moves(source, pods, underutilized(source, self._thresholds))
        if isinstance(found, tuple):
            return found
        if objection := self._choices.objection(source.node, found):
            return objection
        moves = tuple(replace(move, likely=choice.destinations or move.likely) for move in found)
        self._carry_out(source.node, Wave(choice.avoid, moves))
        return None

    def _moves(self, source: NodeUtilization, pods: Sequence[Pod], reason: Cause) -> list[Move] | Kept:
        """Return a move for each pod, in their order, or the first one that has nowhere to go.

        This is tried out in the cluster's picture of the future, and taken back.  For each one all pods of the node
        have gone or are about to, and the replacements of those before it are there.
        """
        moves: list[Move] = []
        with self._cluster.scope():
            for pod in pods:
                self._cluster.remove(pod)
            for pod in pods:
                move = self._move(source, pod, reason)
                if isinstance(move, Refused):
                    return pod, move
                moves.append(move)
        return moves

    def _move(self, source: NodeUtilization, pod: Pod, reason: Cause) -> Move | Refused:
        usage = self._usage.of_pod(pod)
        likely = self._destinations.likely(pod, usage)
        if isinstance(likely, Refused):
            return likely
        arrival = self._destinations.expect(pod, likely[0], self._thresholds)
        because = with_pod_gone(reason, source.points(usage)).with_details(lands_on=arrival)
        return Move(pod, likely[0].name, tuple(node.name for node in likely), because, usage)

    def _kept(self, node: Node, pods: Sequence[Pod]) -> Kept | None:
        """Return what keeps a node, whatever the destinations."""
        if refusal := self._in_use.refusal(node, pods):
            return pods[0], refusal
        holding = next((pod for pod in pods if pod.holding), None)
        if holding:
            return holding, refused(Code.HOLDS_NODE, annotation=holding.holding)
        return self._selection.first_immovable(pods) or self._evict.first_refusal(pods)

    def _carry_out(self, node: Node, wave: Wave) -> None:
        self._steer.begin(wave)
        placements = self._steer.settle(wave, self._evict_all(wave.moves))
        if not occupants(self._cluster, node):
            self._in_use.discard(node)
            self._evict.emptied(node)
        for placement in placements:
            self._landed(placement)
        self._judge(placements)

    def _judge(self, placements: Sequence[ActualPlacement]) -> None:
        self._elsewhere = self._elsewhere + 1 if mostly_elsewhere(placements) else 0
        if self._elsewhere == ELSEWHERE:
            self._evict.warn(cause(Code.LANDED_ELSEWHERE, waves=self._elsewhere))
            self._is_over = True

    def _evict_all(self, moves: Iterable[Move]) -> list[tuple[Move, Verdict]]:
        moved: list[tuple[Move, Verdict]] = []
        for move in moves:
            verdict = self._evict(move.pod, move.because, move.destination)
            if not verdict.gone:
                # Only the server can still refuse: then the node is not emptied, and its other pods stay.
                break
            if verdict.leaving:
                moved.append((move, verdict))
        return moved

    def _landed(self, placement: ActualPlacement) -> None:
        node = self._cluster.node(placement.node) if placement.node else None
        if node is not None:
            self._cluster.place(placement.move.pod, node)
            self._in_use.add(node)
        self._received.update(self._choices.occupied_by(placement))

    def _empty_nodes(self) -> Collection[str]:
        held = self._cluster.held
        return {node.name for node in self._cluster.nodes if node.name not in self._in_use or node.name in held}
