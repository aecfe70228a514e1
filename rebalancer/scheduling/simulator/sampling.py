"""In a large cluster the scheduler stops once it has found enough feasible nodes, and scores only those.

Source: the Kubernetes documentation, Scheduler Performance Tuning.

1. How many are enough (`nodes_to_score`): up to 100 nodes, all.  Of more, the configured share; by default 50 % less
   1 % for every 125 nodes, at least 5 %.  Never fewer than 100.
2. Which nodes may win (`window_winners`), since it is not known which are scored.
3. Which nodes likely win (`favourites`).

Example: of 1000 nodes, 50 - 8 = 42 % are enough, 420 nodes.  If all 1000 are feasible, 580 are left out: a node may win
unless more than 580 nodes are certainly better.  One of the best 9 nodes is scored in 99 of 100 cases: 0.58 ** 9 < 1 %.
"""

from collections.abc import Mapping, Sequence
from math import ceil, log

from rebalancer.scheduling.simulator.totals import Weighted, totals

_ALL = 100
_SHARE = 50
_STEP = 125
_LEAST_SHARE = 5
_WHOLE = 100
_RARE = 0.01

#: Plugins whose score of a node depends on that node alone; the others compare it with the other scored nodes.
_ABSOLUTE = frozenset(("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "PodCapacityOfNode"))


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are enough.

    Args:
        percentage: the configured share; 0 if none is configured.
        nodes: all nodes of the cluster, or those that the pod names.
    """
    if nodes < _ALL:
        return nodes
    share = percentage or max(_SHARE - nodes // _STEP, _LEAST_SHARE)
    return max(nodes * min(share, _WHOLE) // _WHOLE, min(_ALL, nodes))


def window_winners(weighted: Mapping[str, Weighted], count: int, enough: int) -> list[int]:
    """Return the positions of the nodes that may win if only `enough` of the `count` feasible nodes are scored.

    Any node may be scored: that depends on where the scheduler stopped last, on the order in which it learnt of the
    nodes, and on which of its workers is first.  A node may win unless the nodes that are certainly better are more
    than can be left out.  Scores that compare nodes with each other may be anything from zero to their highest value,
    since the other scored nodes are not known.
    """
    certain = totals((each for plugin, each in weighted.items() if plugin in _ABSOLUTE), count)
    relative = (each for plugin, each in weighted.items() if plugin not in _ABSOLUTE and not each.even)
    slack = sum(each.weight * max(each.scores) for each in relative)
    most, least = max(certain), min(certain)
    if most - slack <= least:  # as a rule, since soft taints or spread weigh more than room: no need to rank the nodes
        return list(range(count))
    bar = sorted(certain, reverse=True)[count - enough] - slack
    return [place for place, score in enumerate(certain) if score >= bar]


def favourites(totals: Sequence[int], enough: int) -> list[int]:
    """Return the positions of the best nodes: so many that one of them is almost surely scored.

    If every node is equally likely to be scored, k nodes are all left out with probability (1 - share) ** k.  The
    smallest k is taken for which that is at most 1 %.  Nodes with the same score as the last one are included.
    """
    share = enough / len(totals)
    number = min(ceil(log(_RARE) / log(1 - share)), len(totals))
    bar = sorted(totals, reverse=True)[number - 1]
    return [place for place, total in enumerate(totals) if total >= bar]
