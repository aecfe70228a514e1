"""What nodes use before and after a strategy has moved pods between them, for the report.

Nothing is decided by these figures.  Where a rule does not say where its pods go, each is expected on the destination
that is the least full then, without asking whether it fits.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from heapq import heapify, heapreplace

from rebalancer.balancing.usage import FollowedUsage, OfPod
from rebalancer.balancing.utilization import NodeUtilization, Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources
from rebalancer.eviction import observation
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.observation import Observation, WeighedNode

_LOG = logging.getLogger(__name__)
_DECIMALS = 2
#: The descheduler's words for pods that may go, by quality of service.
_REMOVABLE = {"BestEffort": "bePods", "Burstable": "bPods", "Guaranteed": "gPods"}

#: Reasons why nothing can be done, each with whether it holds; the first that holds counts.
Obstacles = Sequence[tuple[bool, str]]


class UsageWeighing(FollowedUsage):
    """Follows what copies of nodes use; a node that receives nothing is not underutilized."""

    def __init__(
        self,
        nodes: Iterable[NodeUtilization],
        of_pod: OfPod | None,
        low: Percentages,
        high: Percentages,
        receives: Callable[[Node], bool] = lambda _: True,
    ) -> None:
        copies = (NodeUtilization(each.node, each.used, each.offset) for each in nodes)
        super().__init__(copies, of_pod or (lambda _: None), rises=True)
        self._low, self._high, self._receives = low, high, receives
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

    @contextmanager
    def told(
        self, cluster: Cluster, evict: Evict, counts: Mapping[str, int], obstacles: Obstacles, number_of_nodes: int
    ) -> Iterator[None]:
        """Follow the cluster within this context, and report at its end what was observed, also after an error.

        With `-v 1` each node is logged first.
        """
        if _LOG.isEnabledFor(logging.INFO):
            self._log(cluster, evict)
        cluster.follow(self)
        try:
            yield
        finally:
            nodes = tuple(
                WeighedNode(name, before, _rounded(self._nodes[name]), state, self._state(self._nodes[name]))
                for name, (before, state) in self._before.items()
            )
            obstacle = next((code for is_so, code in obstacles if is_so), "")
            figures = {"numberOfNodes": number_of_nodes}
            evict.observe(Observation(counts, figures, nodes, dict(self._low), dict(self._high), obstacle))

    @contextmanager
    def while_emptying(
        self, cluster: Cluster, evict: Evict, under: Sized, candidates: Sized, receivers: Sized, number_of_nodes: int
    ) -> Iterator[bool]:
        """Do the same while candidates are emptied, and yield whether more than this number are idle and some receive.

        All that are nearly idle are under; not all of them may be candidates.
        """
        few = len(under) <= max(number_of_nodes, 0)
        counts = {"nodes": len(self._nodes), "under": len(under), "receivers": len(receivers)}
        obstacles = (
            (not candidates, observation.NONE_UNDER),
            (few, observation.TOO_FEW_UNDER),
            (not receivers, observation.NONE_RECEIVES),
        )
        with self.told(cluster, evict, counts, obstacles, number_of_nodes):
            yield not few and bool(receivers)

    def _log(self, cluster: Cluster, evict: Evict) -> None:
        """Write a line for each node: its state, what it uses, and how many of its pods may go, by their class."""
        for name, (percents, state) in self._before.items():
            pods = cluster.pods_on(self._nodes[name].node)
            removable = Counter(pod.qos for pod in pods if not evict.filter_refusal(pod))
            usage = ", ".join(f"{resource} {percent:.1f} %" for resource, percent in percents.items())
            by_class = ", ".join(f"{words}:{removable[qos]}" for qos, words in _REMOVABLE.items())
            counts = f"allPods:{len(pods)}, nonRemovablePods:{len(pods) - removable.total()}, {by_class}"
            _LOG.info("node %s is %s: %s; %s", name, state, usage, counts)

    def _state(self, node: NodeUtilization) -> str:
        if not node.within(self._high):
            return observation.OVERUTILIZED
        idle = node.within(self._low) and self._receives(node.node)
        return observation.UNDERUTILIZED if idle else observation.APPROPRIATE

    def _fullness(self, name: str) -> float:
        return max((self._nodes[name].percent(each) or 0.0 for each in self._low), default=0.0)


def _rounded(node: NodeUtilization) -> Percentages:
    return {name: round(max(percent, 0.0), _DECIMALS) for name, percent in node.percents().items()}
