"""Raw scores of all nodes, scaled among those that are scored: the scheduler's normalization, without a pass per pod.

Only the highest raw score among the scored nodes matters to how they are scaled, and it is nearly always the same.
Example: nodes have 0, 1 or 2 soft taints.  As long as a node with 2 is scored, 0, 1 and 2 become 100, 50 and 0
(reversed); that is worked out once for all nodes.  Where only nodes with 0 or 1 are scored, these become 100 and 0.
"""

from collections.abc import Sequence

from rebalancer.scheduling.simulator.arithmetic import scaled
from rebalancer.scheduling.simulator.nodes import Nodes


class Scaled:
    """A column of raw scores, none of them negative.

    Args:
        column: by index of the node; it must not change.
        reverse: whether the highest becomes 0 and not 100.
    """

    def __init__(self, column: Sequence[int], *, reverse: bool = False) -> None:
        self._column = column
        self._reverse = reverse
        holders: dict[int, set[int]] = {score: set() for score in sorted(set(column), reverse=True)}
        for index, score in enumerate(column):
            holders[score].add(index)
        self._holders = holders
        self._known: dict[int, list[int]] = {}

    def of(self, nodes: Nodes) -> Sequence[int]:
        """Return the scaled scores of some nodes, in their order."""
        most = next((score for score, holders in self._holders.items() if not holders.isdisjoint(nodes)), 0)
        known = self._known.get(most)
        if known is None:
            known = self._known[most] = scaled(self._column, most, reverse=self._reverse)
        return nodes.of(known)
