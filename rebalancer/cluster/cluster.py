"""The snapshot a cycle works on: the state at `now`, less what was granted since.

The objects never change; only `remove` does anything, and it takes a pod out at once, so that whatever is asked next
is answered without it.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from rebalancer.cluster import resources
from rebalancer.cluster.fit import Fit
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import EVERYTHING, LabelSelector
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import StrategyError

#: Asks a source of real usage about a cluster; what is asked is a strategy's `metricsUtilization`, which only the
#: source understands.  Raises StrategyError where the source has no answer.
Measure = Callable[["Cluster", object], Measured]


def unmeasured(_cluster: "Cluster", _wanted: object) -> Measured:
    """Have no source of real usage.

    Raises:
        StrategyError: always.
    """
    raise StrategyError("there is no source of real usage here")


class Cluster:
    """Nodes in the order of their names, pods by age, namespace and name; both with indices.

    Attributes:
        now: the clock of the cycle.
        nodes: the nodes the cycle works on: ready, and selected by the policy.
        ready_nodes: all ready nodes, selected or not.
        snapshot: the objects as they were read.
        changes: the nodes that pods were taken out of, in order.
    """

    def __init__(self, snapshot: Snapshot, selector: LabelSelector = EVERYTHING, measure: Measure = unmeasured) -> None:
        self.snapshot = snapshot
        self._measure = measure
        self.now: datetime = snapshot.now
        self.changes: list[str] = []
        self.ready_nodes = tuple(sorted((node for node in snapshot.nodes if node.ready), key=lambda node: node.name))
        self.nodes = tuple(node for node in self.ready_nodes if selector.matches(node.labels))
        self._nodes = {node.name: node for node in snapshot.nodes}
        self._pods: dict[str, dict[tuple[str, str], Pod]] = {}
        self._siblings: Counter[str] = Counter()
        self._used: dict[str, dict[str, int]] = {}
        for pod in sorted(snapshot.pods, key=lambda pod: pod.age_order):
            self._add(pod)
        self._fit = Fit(self.active_pods_on, self.free)

    def node(self, name: str) -> Node | None:
        """Return the node of this name, ready or not; None if there is none."""
        return self._nodes.get(name)

    def pods(self) -> tuple[Pod, ...]:
        """Return all pods, of any phase, on the nodes of the cycle, node by node."""
        return tuple(pod for node in self.nodes for pod in self.pods_on(node))

    def pods_on(self, node: Node) -> tuple[Pod, ...]:
        """Return all pods on a node, of any phase, the oldest first."""
        return tuple(self._pods.get(node.name, {}).values())

    def active_pods_on(self, node: Node) -> tuple[Pod, ...]:
        """Return the pods on a node that are neither Succeeded nor Failed, the oldest first."""
        return tuple(pod for pod in self._pods.get(node.name, {}).values() if pod.active)

    def contains(self, pod: Pod) -> bool:
        """Tell whether this very pod is still there."""
        return self._pods.get(pod.node, {}).get(pod.key) is pod

    def remove(self, pod: Pod) -> None:
        """Take a pod out; whatever is asked from now on is answered without it."""
        del self._pods[pod.node][pod.key]
        self.changes.append(pod.node)
        self._siblings.subtract(owner.uid for owner in pod.owners)
        if pod.active:
            resources.subtract(self._used[pod.node], _taken(pod))

    def siblings(self, owner_uid: str) -> int:
        """Return how many pods carry this owner, in any phase and anywhere."""
        return self._siblings[owner_uid]

    def used(self, node: Node) -> resources.Resources:
        """Return what the active pods of a node request, with their number as `pods`."""
        return self._used.get(node.name, {})

    def free(self, node: Node) -> Callable[[str], int]:
        """Return a function from a resource's name to what is left of a node's allocatable amount."""
        used = self._used.get(node.name, {})
        return lambda name: node.allocatable.get(name, 0) - used.get(name, 0)

    def measure(self, wanted: object) -> Measured:
        """Return what nodes and pods really use.

        Args:
            wanted: a strategy's `metricsUtilization`.

        Raises:
            StrategyError: the source is not set up, does not answer, or knows too few nodes.
        """
        return self._measure(self, wanted)

    def why_not(self, pod: Pod, node: Node) -> str:
        """Return why the pod could not run on the node, empty if it could (see `rebalancer.cluster.fit`)."""
        return self._fit.why_not(pod, node)

    def fits(self, pod: Pod, node: Node) -> bool:
        """Tell whether the pod could run on the node (see `rebalancer.cluster.fit`)."""
        return not self._fit.why_not(pod, node)

    def fits_any_other(self, pod: Pod, nodes: Iterable[Node]) -> bool:
        """Tell whether the pod could run on one of these nodes other than its own."""
        return any(node.name != pod.node and not self._fit.why_not(pod, node) for node in nodes)

    def _add(self, pod: Pod) -> None:
        self._pods.setdefault(pod.node, {})[pod.key] = pod
        self._siblings.update(owner.uid for owner in pod.owners)
        if pod.active:
            resources.add(self._used.setdefault(pod.node, {}), _taken(pod))


def _taken(pod: Pod) -> resources.Resources:
    return {**pod.spec.requests, resources.PODS: 1}
