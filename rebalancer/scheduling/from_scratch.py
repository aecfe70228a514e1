"""All pods of a cluster placed anew, on nodes that are empty at first.

1. Static pods and pods of DaemonSets are on their nodes before all others, and so are pods of which nobody knows where
   they would go: those stay where they are.
2. The others come by priority.  In which order those of one priority come is not known: after a rollout it is another
   one than by age, and the last large pods decide how even nodes are.  So it is drawn, for each possible history.
3. A pod that fits nowhere is asked about again, once others have come: its affinity may wait for one of them.

The scheduler takes one of several equal nodes by chance, and in a large cluster it begins to look anywhere.  All of
this is drawn from the pod's name and the number of the history: the same cluster always gives the same picture.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

import msgspec

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.scheduling.simulation import completed
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.replacement import unbound
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State, newest_minor

#: By namespace and name.
PodKey = tuple[str, str]

_DRAWS = 1 << 32
_ROUNDS = 5


@dataclass(slots=True)
class Placed:
    """Where pods ended up."""

    nodes: dict[PodKey, str] = field(default_factory=dict)  # by pod, its node
    nowhere: dict[PodKey, str] = field(default_factory=dict)  # by pod, why no node takes it, in the scheduler's words
    stayed: dict[PodKey, str] = field(default_factory=dict)  # by pod that was left where it is, why
    # Where pods were packed, the nodes in the order in which they came into use.
    used: list[str] = field(default_factory=list)


class EmptyCluster:
    """The nodes of a snapshot, to be filled once with pods; these may request other amounts than those there."""

    def __init__(self, snapshot: Snapshot, pods: Iterable[Pod]) -> None:
        nodes = tuple(node.as_scheduled for node in snapshot.nodes)
        empty = msgspec.structs.replace(snapshot, nodes=nodes, pods=())
        self._state = State(empty, completed(snapshot.scheduler_inputs, snapshot.pods)[0], newest_minor(snapshot.nodes))
        document = snapshot.scheduler_configuration
        self._profiles = profiles(self._state, None if document is None else read_configuration(document))
        self._placed = Placed()
        self._unknown: dict[object, str] = {}
        present = [pod for pod in pods if pod.active and not pod.terminating]
        self._bound = [pod for pod in present if pod.node in self._state.index and _is_bound(pod)]
        # Before anything counts pods: to look for all that counts a new group takes a third of the time.
        for pod in present:
            self._state.tallies.group(pod.namespace, unbound(pod.labels))
        bound = {pod.key for pod in self._bound}
        self._free = [pod for pod in present if pod.key not in bound]

    def scheduled(self, history: int = 0) -> Placed:
        """Return where the scheduler would put the pods in one possible history, by its number."""
        simulator = Simulator(self._state, lambda _: self._profiles)

        def draw(pod: Pod) -> int:
            return crc32(f"{history}/{pod.namespace}/{pod.name}".encode())

        def choose(pod: Pod) -> Answer:
            drawn = draw(pod)
            answer = simulator.ask(pod, window=SamplingWindow(0, drawn / _DRAWS))
            return Answer(nodes=(answer.nodes[drawn % len(answer.nodes)],)) if answer.nodes else answer

        queue = sorted(self._free, key=lambda pod: (-(pod.spec.priority or 0), draw(pod), pod.key))
        return self._fill(simulator, queue, choose)

    def packed(self) -> Placed:
        """Return the same for pods that are put onto as few nodes as they fit on, largest first.

        A pod goes to the first node in use that takes it, else to the largest of the others; with ten nodes that is one
        or two above the fewest that are possible.  Pods of DaemonSets run everywhere, and use no node.
        """
        unscored = {name: replace(each, scores=()) for name, each in self._profiles.items()}
        simulator, state = Simulator(self._state, lambda _: unscored), self._state
        totals = {name: int(state.offered[name].sum()) or 1 for name in (CPU, MEMORY)}

        def share(amounts: Resources) -> float:
            return max(amounts.get(name, 0) / total for name, total in totals.items())

        # Pods that tolerate everything go to nodes that are cordoned or not ready too: these come last.
        largest = sorted(state.nodes, key=lambda x: (x.unschedulable or not x.ready, -share(x.allocatable), x.name))
        rank = {node.name: len(largest) + place for place, node in enumerate(largest)}
        used = self._placed.used

        def choose(pod: Pod) -> Answer:
            answer = simulator.ask(pod)  # without scores, all nodes that take it are the best
            if not answer.nodes:
                return answer
            node = min(answer.nodes, key=rank.__getitem__)
            if node not in used:
                rank[node] = len(used)
                used.append(node)
            return Answer(nodes=(node,))

        return self._fill(simulator, sorted(self._free, key=lambda pod: (-share(pod.spec.requests), *pod.key)), choose)

    def _fill(self, simulator: Simulator, queue: Sequence[Pod], choose: Callable[[Pod], Answer]) -> Placed:
        for pod in self._bound:
            self._put(pod, pod.node)
        waiting = [_unplaced(pod) for pod in queue if not self._stays(pod, simulator)]
        for _ in range(_ROUNDS):
            before = len(self._placed.nodes)
            waiting = [pod for pod in waiting if not self._place(pod, choose(pod))]
            if not waiting or len(self._placed.nodes) == before:
                break
        return self._placed

    def _stays(self, pod: Pod, simulator: Simulator) -> bool:
        """Leave a pod in place of which nobody knows where it would go; asked once for all pods of a template."""
        alike = id(pod.spec), pod.namespace, pod.claims
        if alike not in self._unknown:
            answer = simulator.ask(_unplaced(pod))
            self._unknown[alike] = "" if answer.nodes or answer.reason else answer.unknown
        if self._unknown[alike]:
            self._placed.stayed[pod.key] = self._unknown[alike]
            if pod.node in self._state.index:
                self._put(pod, pod.node)
        return bool(self._unknown[alike])

    def _place(self, pod: Pod, answer: Answer) -> bool:
        if not answer.nodes:
            self._placed.nowhere[pod.key] = answer.reason or answer.unknown
            return False
        self._placed.nowhere.pop(pod.key, None)
        self._put(pod, answer.nodes[0])
        return True

    def _put(self, pod: Pod, node: str) -> None:
        self._state.place(pod, node)
        self._placed.nodes[pod.key] = node


def _unplaced(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, node="", nominated_node="", labels=unbound(pod.labels))


def _is_bound(pod: Pod) -> bool:
    return pod.static or pod.mirror or (pod.controller is not None and pod.controller.kind == "DaemonSet")
