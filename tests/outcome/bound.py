"""How few nodes pods could do with: a bound for what emptying nodes can come to."""

from collections.abc import Iterable
from math import ceil

from tests.outcome.load import NODE_CPU, NODE_MEMORY, Workload

PODS = 110  # that a node takes, with its agent


def nodes_needed(load: Iterable[Workload]) -> int:
    """Return how many nodes the requests fill: of cpu, of memory or by number, whichever needs most.

    No packing needs fewer; what pods leave over, and what agents request, is not counted.
    """
    sums = [0, 0, 0]
    for each in load:
        for index, amount in enumerate((each.cpu, each.memory, 1)):
            sums[index] += each.replicas * amount
    return max(ceil(total / offered) for total, offered in zip(sums, (NODE_CPU, NODE_MEMORY, PODS - 1), strict=True))
