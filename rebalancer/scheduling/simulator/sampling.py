"""What a large cluster changes: the scheduler looks for enough nodes only, and scores those.

Source: the Kubernetes documentation, Scheduler Performance Tuning: of up to a hundred nodes all are looked at; of more
a share, 50 % less one for every 125 nodes but at least 5 %, unless it is set, and never fewer than a hundred.
"""

from collections.abc import Mapping, Sequence
from math import ceil, log
from operator import add

_ALL = 100
_SHARE = 50
_STEP = 125
_LEAST_SHARE = 5
_WHOLE = 100
_RARE = 0.01

#: Plugins whose score of a node goes by that node alone; the others compare it with the nodes scored.
_ABSOLUTE = frozenset(("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "PodCapacityOfNode"))


def nodes_to_score(percentage: int, nodes: int) -> int:
    """Return how many feasible nodes are enough.

    Args:
        percentage: as configured, 0 for none.
        nodes: all nodes of the cluster, or those that the pod names.
    """
    if nodes < _ALL:
        return nodes
    share = percentage or max(_SHARE - nodes // _STEP, _LEAST_SHARE)
    return max(nodes * min(share, _WHOLE) // _WHOLE, min(_ALL, nodes))


def window_winners(weighted: Mapping[str, Sequence[int]], count: int, enough: int) -> list[int]:
    """Return the places of the nodes that may win where only so many of them are scored.

    Which nodes are scored hangs on where the scheduler stopped last, on the order in which it learnt of them, and on
    which of its workers is first: any of them may be.  A node may win unless more than all the nodes that can be left
    out are certainly better.  Scores that compare nodes with each other may come out anywhere from none to all of the
    weight's points, since the nodes compared with are not known.
    """
    left_out = count - enough
    certain = [0] * count
    slack = 0
    for plugin, scores in weighted.items():
        if plugin in _ABSOLUTE:
            certain = list(map(add, certain, scores))
        elif len(set(scores)) > 1:
            slack += max(scores)
    bar = sorted(certain, reverse=True)[left_out] - slack
    return [place for place, score in enumerate(certain) if score >= bar]


def favourites(totals: Sequence[int], enough: int) -> list[int]:
    """Return the places of the best nodes, of which one is almost surely among those that are scored.

    If so many of all nodes are scored, and any of them as likely as another, k nodes are all left out in one of
    (1 - share) ** -k cases; k is taken so that this happens once in a hundred.  Equals of the last one are among them.
    """
    share = enough / len(totals)
    number = min(ceil(log(_RARE) / log(1 - share)), len(totals))
    bar = sorted(totals, reverse=True)[number - 1]
    return [place for place, total in enumerate(totals) if total >= bar]
