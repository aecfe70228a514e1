"""Where pods that leave would likely land, and whether that does harm there.

A pod goes only if some destination takes it: it fits there, and the node stays within its ceilings with its usage.  All
nodes where the simulated scheduler may put the replacement must be able to take it too, by the plan and in each
possible history; they need not be destinations.  In a history a node is judged with the replacements that are there
then.  For example, two nodes are empty, and a pod of 30 points is expected on n2, but may be on n3.  The next one is
expected on n3, and lands on n2 if the first is on n3: so n2 is judged as if it were empty.

There is one exception, where nodes have floors.  A node may be full of one resource and low in another, and the
scheduler may prefer it to all others; then no pod could ever move.  So a node may pass a ceiling, up to
100 %, if the pod brings it nearer to its floors by more points than it lifts it above its ceilings.

Where the scheduler is unknown, room on a destination is enough.  The pod is expected on the one that is the most free
by requests, or the least free where pods are packed; ties by name.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from rebalancer.balancing.candidates import Selection
from rebalancer.balancing.cause_details import arrival
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, Resources, arriving
from rebalancer.errors import StrategyError
from rebalancer.eviction.causes import Cause, Code, cause
from rebalancer.eviction.verdict import Refused, refused
from rebalancer.policy.usage import UtilizationArgs
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.fit import obstacles
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import ConfigurationError
from rebalancer.scheduling.worlds import Worlds


def simulation_by(args: UtilizationArgs, cluster: Cluster) -> Simulation | None:
    """Return the simulated scheduler; None if the arguments say that the scheduler is unknown."""
    if args.metrics_utilization is not None and args.metrics_utilization.scheduler == "unknown":
        return None
    try:
        return cluster.index(Simulation)
    except ConfigurationError as error:
        raise StrategyError(str(error)) from None


_DECIMALS = 9  # smaller differences of shares are floating-point noise


class Destinations:
    """The nodes that may get pods, with their peak usage of all resources that count; they follow the cluster."""

    def __init__(
        self,
        selection: Selection,
        simulation: Simulation | None,  # None: it is not known where replacements land
        nodes: Iterable[NodeUtilization],
        ceilings: Percentages,
        *,
        packed: bool = False,  # whether pods go to the fullest that takes them, not the emptiest
        others: Iterable[NodeUtilization] = (),  # of known usage, but no destinations
        floors: Percentages | None = None,  # below which a node uses too little
        emptied: Collection[str] = (),  # nodes that are to lose all their pods; none of them takes a pod
        elsewhere: Collection[str] = (),  # nodes of other pools, which pods must not go to
    ) -> None:
        self._cluster, self._evict, self._usage = selection.cluster, selection.evict, selection.usage
        self._eligible = self._cluster.index(EligibleNodes)
        self._ceilings = ceilings
        self._floors = floors or {}
        self.emptied = emptied  # or to stay empty
        self._elsewhere = elsewhere
        self._sign = 1 if packed else -1
        self._destinations = {each.node.name: each for each in nodes}
        #: All nodes of known usage, by name, with the pods that are expected there.
        self.known: Mapping[str, NodeUtilization] = {each.node.name: each for each in others} | self._destinations
        self._headroom = {name: each.headroom(ceilings) for name, each in self._destinations.items()}
        self._simulation = simulation
        self._worlds = self._cluster.index(Worlds) if simulation else None
        self._ranks = {name: self._rank(each.node) for name, each in self._destinations.items()}
        self._order = sorted(self._ranks.values())
        self._cluster.follow(self)

    def likely(self, pod: Pod) -> Sequence[Node] | Refused:
        """Return the nodes where the replacement may land by the plan, or why the pod should stay.

        For example: a pod of n1 uses 10 points.  Destinations are n2 at 20 % and n3 at 45 %, with a ceiling of 50 %.
        n2 has room for it.  If the scheduler may choose n3, the pod would lift that to 55 %: it stays.
        """
        usage = self._of_pod(pod)
        # Is there any node that could take it?
        first = self._first(pod, usage)
        if first is None:
            causes = (self._why_not(pod, each, usage) for each in self._destinations.values())
            return refused(Code.NO_DESTINATION, nodes=len(self._destinations), **obstacles(causes))
        # Where would the scheduler put it, and which of these nodes would that harm?
        found: dict[str, Node] = {}
        for notice in self._simulation.notices if self._simulation else ():
            self._evict.warn(notice)
        # Each answer counts: soon, and later, when pods that are going have gone.  A pod that could only come in by
        # preempting others has nowhere to go, even if the scheduler would preempt them.
        for answer in self._simulation.in_turn(pod) if self._simulation else ():
            nodes = self._judge(answer, pod, usage)
            if isinstance(nodes, Refused):
                return nodes  # the later answer is not asked for then
            found.update((node.name, node) for node in nodes)
        return [found[name] for name in sorted(found)] or (first,)

    def _judge(self, answer: Answer, pod: Pod, usage: Resources, world: int | None = None) -> list[Node] | Refused:
        """Return the nodes of an answer, in a possible history or by the plan, or why the pod should stay."""
        if answer.reason:
            return refused(Code.NO_DESTINATION, unschedulable=answer.reason)
        if answer.unknown:
            return refused(Code.NO_DESTINATION, unknown=answer.unknown)
        nodes = [node for name in answer.nodes if (node := self._cluster.node(name))]
        for node in nodes:
            # Whose replacements are there in this history alone, and whose are there by the plan alone.
            others = self._worlds.others_on(world, node.name) if self._worlds and world is not None else ((), ())
            more, fewer = (map(self._of_pod, pods) for pods in others)
            with self.known[node.name].exchanged(fewer, more) if node.name in self.known else nullcontext():
                harm = self._harm(pod, node, usage)
            if harm:
                chosen = {"likely": node.name} if world is None else {"may_choose": node.name}
                return refused(Code.NO_DESTINATION, **chosen, harm=harm.as_details())
        return nodes

    def landing(
        self, pod: Pod, in_worlds: Callable[[], bool], fills: Sequence[Node] = ()
    ) -> tuple[Node, tuple[str, ...], Mapping[str, float]] | Refused:
        """Return where a pod is expected, where it may land by the plan, and how likely where; or why it should stay.

        To be asked of a pod before it is expected anywhere.  Nodes that it fills are likely, and it is expected on the
        first.  Shares are empty where no history is looked at: `in_worlds` says no, or the scheduler is not known.
        """
        likely = fills or self.likely(pod)
        if isinstance(likely, Refused):
            return likely
        shares: Mapping[str, float] = {}
        if self._worlds is not None and in_worlds():
            usage = self._of_pod(pod)
            for seen in self._worlds.placements(pod):
                nodes = self._judge(seen.answer, pod, usage, seen.number)
                if isinstance(nodes, Refused):
                    return nodes
            shares = self._worlds.shares(pod)
        if fills or not shares:
            return likely[0], tuple(node.name for node in likely), shares
        # Where it lands most often, unless the plan has others there already, which land elsewhere in most histories.
        often = [self.known[name].node for name in shares]
        fine = (node for node in often if not self._harm(pod, node, usage))
        return next(fine, often[0]), tuple(node.name for node in likely), shares

    def expect(self, pod: Pod, node: Node, names: Iterable[str]) -> dict[str, Any]:
        """Place a pod on a node, in the present scope, and return how full that node becomes (see `arrival`)."""
        self._cluster.place(pod, node)
        return arrival(self.known[node.name], self._of_pod(pod), names)

    def set_ceilings(self, ceilings: Percentages) -> None:
        """Set other ceilings from now on."""
        self._ceilings = ceilings
        self._headroom = {name: each.headroom(ceilings) for name, each in self._destinations.items()}

    def left(self, pod: Pod, sign: int) -> None:  # noqa: ARG002  the interface
        """Note that a node has more free by requests, or less again; its peak is not lowered, to be safe."""
        self._reorder(pod.node)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Charge a node with a pod that is expected there, or take that back."""
        utilization = self.known.get(node.name)
        if utilization is None:
            return
        usage = self._of_pod(pod)
        utilization.charge(usage, sign)
        if headroom := self._headroom.get(node.name):
            for name in headroom:
                headroom[name] -= sign * usage.get(name, 0)
        self._reorder(node.name)

    def _of_pod(self, pod: Pod) -> Resources:
        return arriving(self._usage.of_pod(pod))

    def _first(self, pod: Pod, usage: Resources) -> Node | None:
        for _, name, node in self._order:
            # The usage comes first since it decides most often, and fastest.
            if name in self.emptied or name == pod.node:
                continue
            if self._has_room(name, usage) and self._eligible.fits(pod, node):
                return node
        return None

    def _has_room(self, name: str, usage: Resources) -> bool:
        for resource, left in self._headroom[name].items():  # noqa: SIM110  all() takes twice as long
            if usage.get(resource, 0) > left:
                return False
        return True

    def _why_not(self, pod: Pod, destination: NodeUtilization, usage: Resources) -> Cause | None:
        if destination.node.name in self.emptied:
            return cause(Code.IDLE_NODE)
        reason = self._eligible.why_not(pod, destination.node)
        return reason or _above_ceiling(destination.passed(usage, self._ceilings))

    def _harm(self, pod: Pod, node: Node, usage: Resources) -> Cause | None:
        if node.name == pod.node:
            return cause(Code.OWN_NODE)
        if node.unschedulable:  # it will be drained, and yet a pod that tolerates everything may land there
            return cause(Code.CORDONED)
        if node.name in self._cluster.held:
            return cause(Code.HELD_NODE)
        if node.name in self.emptied:
            return cause(Code.IDLE_NODE)
        utilization = self.known.get(node.name)
        if utilization is None:
            return cause(Code.OTHER_POOL if node.name in self._elsewhere else Code.UNKNOWN_USAGE)
        passed = utilization.passed(usage, self._ceilings)
        return None if passed and self._fills_more_than_it_passes(utilization, usage) else _above_ceiling(passed)

    def _fills_more_than_it_passes(self, node: NodeUtilization, usage: Resources) -> bool:
        if not self._floors or node.passed(usage, {}):
            return False
        now, then = (
            round(node.short_of(self._floors, added) + node.above(self._ceilings, added).total, _DECIMALS)
            for added in ({}, node.points(usage))
        )
        return then < now

    def _reorder(self, name: str) -> None:
        before = self._ranks.get(name)
        if before is not None:
            self._order.remove(before)
            after = self._ranks[name] = self._rank(before[2])
            insort(self._order, after)

    def _rank(self, node: Node) -> tuple[float, str, Node]:
        """Return the destination with its place in the order: by the mean share of cpu and memory not requested."""
        free = self._cluster.free(node)
        shares = [free(name) / node.allocatable[name] for name in (CPU, MEMORY) if node.allocatable.get(name)]
        return (round(self._sign * sum(shares) / max(len(shares), 1), _DECIMALS), node.name, node)


def _above_ceiling(passed: tuple[str, float] | None) -> Cause | None:
    return cause(Code.ABOVE_CEILING, resource=passed[0], ceiling=passed[1]) if passed else None
