"""What nodes use before and after a strategy has moved pods between them, for the report.

Nothing is decided by these figures.  Pods that go are taken off their node; pods that are expected somewhere are added
there.  Where a rule does not say where its pods go, each is expected on the destination that is the least full then,
without asking whether it fits.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heapify, heapreplace

from rebalancer.balancing.usage import FallingUsage
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import Resources, arriving
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.observation import APPROPRIATE, OVERUTILIZED, UNDERUTILIZED, Observation, WeighedNode

_LOG = logging.getLogger(__name__)
_DECIMALS = 2
#: The descheduler's words for pods that may go, by quality of service.
_REMOVABLE = {"BestEffort": "bePods", "Burstable": "bPods", "Guaranteed": "gPods"}


class UsageWeighing(FallingUsage):
    """Follows what nodes use.

    Args:
        nodes: as the strategy weighs them; they are copied.
        of_pod: what a pod uses; None if the source knows nothing of single pods.
        low: at or below all of these percentages a node is underutilized.
        high: above any of these it is overutilized.
        cordoned: whether a cordoned node may be underutilized.
    """

    def __init__(
        self,
        nodes: Iterable[NodeUtilization],
        of_pod: Callable[[Pod], Resources | None] | None,
        low: Percentages,
        high: Percentages,
        *,
        cordoned: bool = False,
    ) -> None:
        copies = (NodeUtilization(each.node, each.used, each.offset) for each in nodes)
        super().__init__(copies, of_pod or (lambda _: None))
        self._low, self._high, self._cordoned = low, high, cordoned
        self._before = {name: (_rounded(node), self._state(node)) for name, node in self._nodes.items()}
        self._by_fullness: list[tuple[float, str]] = []

    def expect_on(self, nodes: Iterable[NodeUtilization]) -> None:
        """Set the nodes on which pods that `arrive` are expected."""
        names = [each.node.name for each in nodes if each.node.name in self._nodes]
        self._by_fullness = [(self._fullness(name), name) for name in names]
        heapify(self._by_fullness)

    def arrive(self, amounts: Resources) -> None:
        """Add what a pod uses to the destination that is the least full."""
        if self._by_fullness:
            name = self._by_fullness[0][1]
            self._nodes[name].charge(amounts)
            heapreplace(self._by_fullness, (self._fullness(name), name))

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Count the usage of a pod that is expected on a node, or is not any more."""
        if node.name in self._nodes:
            self._nodes[node.name].charge(arriving(self._of_pod(pod) or {}), sign)

    def log(self, cluster: Cluster, evict: Evict) -> None:
        """Write a line for each node: its state, what it uses, and how many of its pods may go, by their class."""
        for name, (percents, state) in self._before.items():
            pods = cluster.pods_on(self._nodes[name].node)
            removable = Counter(pod.qos for pod in pods if not evict.filter_refusal(pod))
            usage = ", ".join(f"{resource} {percent:.1f} %" for resource, percent in percents.items())
            by_class = ", ".join(f"{words}:{removable[qos]}" for qos, words in _REMOVABLE.items())
            counts = f"allPods:{len(pods)}, nonRemovablePods:{len(pods) - removable.total()}, {by_class}"
            _LOG.info("node %s is %s: %s; %s", name, state, usage, counts)

    def observation(self, counts: Mapping[str, int], figures: Mapping[str, float], obstacle: str) -> Observation:
        """Return what was looked at, with the nodes as they are by now."""
        nodes = tuple(self._weighed(name) for name in self._nodes)
        return Observation(counts, figures, nodes, dict(self._low), dict(self._high), obstacle)

    def _weighed(self, name: str) -> WeighedNode:
        before, state = self._before[name]
        node = self._nodes[name]
        return WeighedNode(name, before, _rounded(node), state, self._state(node))

    def _state(self, node: NodeUtilization) -> str:
        if not node.within(self._high):
            return OVERUTILIZED
        idle = node.within(self._low) and (self._cordoned or not node.node.unschedulable)
        return UNDERUTILIZED if idle else APPROPRIATE

    def _fullness(self, name: str) -> float:
        return max((self._nodes[name].percent(each) or 0.0 for each in self._low), default=0.0)


@contextmanager
def told(
    weighing: UsageWeighing,
    cluster: Cluster,
    evict: Evict,
    counts: Mapping[str, int],
    obstacles: Sequence[tuple[bool, str]],
    number_of_nodes: int,
) -> Iterator[None]:
    """Follow the cluster within this context, and report at its end what was observed, also after an error.

    With `-v 1` each node is logged first.

    Args:
        weighing: the figures that follow the cluster.
        cluster: the cluster; only its present scope is followed.
        evict: what takes the observation.
        counts: numbers of nodes.
        obstacles: reasons why nothing can be done, each with whether it holds; the first that holds counts.
        number_of_nodes: more nodes than this must be underutilized.
    """
    obstacle = next((code for is_so, code in obstacles if is_so), "")
    if _LOG.isEnabledFor(logging.INFO):
        weighing.log(cluster, evict)
    cluster.follow(weighing)
    try:
        yield
    finally:
        evict.observe(weighing.observation(counts, {"numberOfNodes": number_of_nodes}, obstacle))


def _rounded(node: NodeUtilization) -> Percentages:
    return {name: round(max(percent, 0.0), _DECIMALS) for name, percent in node.percents().items()}
