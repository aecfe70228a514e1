"""The expected state of the cluster: the snapshot a cycle works on, without the pods that go, with those that come.

The objects never change.  Three methods change the state: `evicted` takes a pod out for good, because its eviction was
granted; `remove` takes one out to see what would happen; `place` adds one to the node where its replacement is
expected.  The last two are undone when their scope ends.  Everything derived from the pods (requests, siblings, every
index) is updated with each step and each undo, so every answer is about the present state.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar, cast

from rebalancer.cluster import resources
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import StrategyError

#: Asks a source of real usage about a cluster.  The second argument is a strategy's `metricsUtilization`, which only
#: the source understands, or `LoadsWanted`.  Raises StrategyError where the source has no answer.
Measure = Callable[["Cluster", object], Measured]


class Scope:
    """One attempt; `keep` says that it succeeded."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Do not undo this scope's steps, earlier or later ones, when it ends."""
        self.kept = True


def unmeasured(_cluster: "Cluster", _wanted: object) -> Measured:
    """Stand in where there is no source of real usage: raises StrategyError."""
    raise StrategyError("there is no source of real usage here")


class Follower(Protocol):
    """Follows the cluster: is called with each pod that goes or comes, so that an index stays up to date."""

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod that left its node (1), or that is back there (-1)."""

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count a pod that is expected on a node (1), or no longer is (-1)."""


Index = TypeVar("Index")


class Cluster:
    """Nodes in the order of their names, pods by age, namespace and name; both with indices."""

    def __init__(self, snapshot: Snapshot, selector: LabelSelector = EVERYTHING, measure: Measure = unmeasured) -> None:
        self.snapshot = snapshot  # the objects as they were read
        self._measure = measure
        self.now: datetime = snapshot.now  # the clock of the cycle
        self.ready_nodes = tuple(sorted((node for node in snapshot.nodes if node.ready), key=lambda node: node.name))
        self.nodes = tuple(node for node in self.ready_nodes if selector.matches(node.labels))  # for this cycle
        #: Names of the nodes that are kept empty, so that nothing may fill them; `hold` adds to them.
        self.held = {node.name for node in snapshot.nodes if node.held_until is not None}
        self.awaiting: set[str] = set()  # names of the nodes on which replacements of pods that went may run
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._pods: dict[str, dict[Pod, None]] = {}  # by node, in their order
        self._expected: dict[str, dict[tuple[str, str], Pod]] = {}
        self._unsorted: set[str] = set()  # nodes where pods came back, which are sorted when somebody asks
        self._active: dict[str, tuple[Pod, ...]] = {}
        self._siblings: Counter[str] = Counter()
        self._used: dict[str, dict[str, int]] = {}
        self._steps: list[Callable[[], None]] = []  # how to undo the steps of the open scopes
        self._depth = 0
        self._indices: dict[object, object] = {}
        self._followers: list[Follower] = []
        for pod in sorted(snapshot.pods, key=lambda pod: pod.age_order):
            self._put(pod)

    def node(self, name: str) -> Node | None:
        """Return the node of this name, ready or not; None if there is none."""
        return self._nodes.get(name)

    def receives(self, node: Node) -> bool:
        """Return whether a node may be filled: it is neither cordoned nor held."""
        return not node.unschedulable and node.name not in self.held

    def hold(self, node: Node) -> None:
        """Keep a node empty from now on; no scope takes that back."""
        self.held.add(node.name)

    def pods(self) -> tuple[Pod, ...]:
        """Return all pods, of any phase, on the nodes of the cluster, node by node."""
        return tuple(pod for node in self.nodes for pod in self.pods_on(node))

    def pods_on(self, node: Node) -> tuple[Pod, ...]:
        """Return all pods that are on a node, of any phase, the oldest first; not those that are expected there."""
        return tuple(self._by_age(node.name))

    def active_pods_on(self, node: Node) -> tuple[Pod, ...]:
        """Return the pods on a node that are neither Succeeded nor Failed, the oldest first."""
        known = self._active.get(node.name)
        if known is None:
            known = tuple([pod for pod in self._by_age(node.name) if pod.active])
            self._active[node.name] = known
        return known

    def expected_on(self, node: Node) -> tuple[Pod, ...]:
        """Return the pods that were placed on a node, in the order in which they were placed."""
        return tuple(self._expected.get(node.name, {}).values())

    def residents(self, node: Node) -> tuple[Pod, ...]:
        """Return the pods that a newcomer to the node would meet: the active ones, then the expected ones."""
        return self.active_pods_on(node) + self.expected_on(node)

    def contains(self, pod: Pod) -> bool:
        """Return whether this pod object is still in the cluster."""
        return pod in self._pods.get(pod.node, ())

    def siblings(self, owner_uid: str) -> int:
        """Return how many pods in the cluster have this owner, in any phase and on any node."""
        return self._siblings[owner_uid]

    def used(self, node: Node) -> resources.Resources:
        """Return what the active and the expected pods of a node request, with their number as `pods`."""
        return self._used.get(node.name, {})

    def free(self, node: Node) -> Callable[[str], int]:
        """Return a function from a resource's name to what is left of a node's allocatable amount."""
        used = self._used.get(node.name, {})
        return lambda name: node.allocatable.get(name, 0) - used.get(name, 0)

    def measure(self, wanted: object) -> Measured:
        """Return what `metricsUtilization` or `LoadsWanted` asks for; raises StrategyError if no source has it."""
        return self._measure(self, wanted)

    def evicted(self, pod: Pod) -> None:
        """Take a pod out for good; no scope brings it back."""
        self._take(pod)

    def remove(self, pod: Pod) -> None:
        """Take a pod out until the present scope ends."""
        self._take(pod)
        self.undo_with(partial(self._take_back, pod))

    def place(self, pod: Pod, node: Node) -> None:
        """Expect a pod on a node until the present scope ends: it takes room there, and cannot be evicted."""
        self._expected.setdefault(node.name, {})[pod.key] = pod
        self._count_requests(pod, node.name, 1)
        for follower in self._followers:
            follower.came(pod, node, 1)
        self.undo_with(partial(self._displace, pod, node))

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Undo at the end what was removed, placed or followed within, unless it is kept for the next outer scope."""
        start, scope = len(self._steps), Scope()
        self._depth += 1
        try:
            yield scope
        finally:
            self._depth -= 1
            if not (scope.kept and self._depth):
                steps = self._steps[start:]
                del self._steps[start:]
                for step in () if scope.kept else reversed(steps):
                    step()

    def undo_with(self, step: Callable[[], None]) -> None:
        """Call this step when the present scope is undone; without a scope, steps are final."""
        if self._depth:
            self._steps.append(step)

    def follow(self, follower: Follower) -> None:
        """Tell a follower of each pod that goes or comes until the present scope ends."""
        self._followers.append(follower)
        self.undo_with(partial(self._followers.remove, follower))

    def index(self, kind: Callable[["Cluster"], Index]) -> Index:
        """Return the one index of this kind, made when first asked for; a `Follower` is told of all later changes."""
        known = self._indices.get(kind)
        if known is None:
            known = self._indices[kind] = kind(self)
            if hasattr(known, "came"):
                self._followers.append(cast(Follower, known))
        return cast(Index, known)

    def tell(self, follower: Follower) -> None:
        """Tell a follower what has changed since the cluster was read."""
        for pod in self.snapshot.pods:
            if not self.contains(pod):
                follower.left(pod, 1)
        for node in self.snapshot.nodes:
            for pod in self.expected_on(node):
                follower.came(pod, node, 1)

    def _by_age(self, name: str) -> Iterable[Pod]:
        """Return the pods of a node, sorted anew if some came back: many come and go before anybody asks."""
        if name in self._unsorted:
            self._unsorted.remove(name)
            self._pods[name] = dict.fromkeys(sorted(self._pods[name], key=lambda each: each.age_order))
        return self._pods.get(name, ())

    def _put(self, pod: Pod) -> None:
        self._pods.setdefault(pod.node, {})[pod] = None
        self._active.pop(pod.node, None)
        for uid in {owner.uid for owner in pod.owners}:
            self._siblings[uid] += 1
        if pod.active:
            self._count_requests(pod, pod.node, 1)

    def _take(self, pod: Pod) -> None:
        del self._pods[pod.node][pod]
        self._active.pop(pod.node, None)
        for uid in {owner.uid for owner in pod.owners}:
            self._siblings[uid] -= 1
        if pod.active:
            self._count_requests(pod, pod.node, -1)
        for follower in self._followers:
            follower.left(pod, 1)

    def _take_back(self, pod: Pod) -> None:
        self._put(pod)
        self._unsorted.add(pod.node)
        for follower in self._followers:
            follower.left(pod, -1)

    def _displace(self, pod: Pod, node: Node) -> None:
        del self._expected[node.name][pod.key]
        self._count_requests(pod, node.name, -1)
        for follower in self._followers:
            follower.came(pod, node, -1)

    def _count_requests(self, pod: Pod, name: str, sign: int) -> None:
        used = self._used.setdefault(name, {})
        for resource, amount in pod.spec.requests.items():
            used[resource] = used.get(resource, 0) + sign * amount
        used[resources.PODS] = used.get(resources.PODS, 0) + sign
