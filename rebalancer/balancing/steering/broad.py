"""Waves where the scheduler scores only a part of the nodes: it is not known which, so pods are sent to many at once.

1. Nodes at or below the mean in every resource receive; all others are avoided, hot ones with two taints.
2. The pods that bring most go, at most one of each node.  A wave has one move per four receivers, and at most 48.
3. A pod goes only if at least a tenth of the nodes that it fits on are receivers that outrank every avoided node.  So
   whichever part the scheduler scores very likely has some of them.
4. The pod may land on any receiver.  So even the fullest must have room for it twice, and on none may the spreading
   over zones get worse.

An example: of 1000 nodes 120 receive, so a wave has at most 30 moves.  A pod fits on all nodes, and 110 receivers
outrank the 880 that are avoided: 110 is more than a tenth of 1000, so the pod may go.  With 90 it would stay.
"""

from collections.abc import Sequence

from rebalancer.balancing.steering.avoidance import Avoidance
from rebalancer.balancing.steering.draft import Draft
from rebalancer.balancing.steering.foresight import Foresight, total
from rebalancer.balancing.steering.fullness import Fullness
from rebalancer.balancing.steering.goal import Goal
from rebalancer.balancing.steering.offers import Offer, Offers
from rebalancer.balancing.steering.pool import Pool
from rebalancer.balancing.steering.trial import made
from rebalancer.balancing.steering.zones import ZONE, ZoneSpread
from rebalancer.balancing.utilization import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict

#: A wave has at most so many moves, and one for so many receivers.
_MOST_MOVES = 48
_RECEIVERS_PER_MOVE = 4
#: At least this share of the nodes that a pod fits on are good receivers: about ten of a hundred nodes that are scored.
_LEAST_SHARE = 0.1
#: Each receiver has to have room for so many times the pod.
_SPARE = 2.0
#: At most so many nodes are looked at as sources.
_MOST_SOURCES = 200
#: A pod joins a wave if it brings at least this share of what the first one brings.
_WORTH_JOINING = 0.5


class BroadWaves:
    """Puts waves together that go to many nodes.

    Args:
        cluster: the cluster.
        evict: says which pods would be refused.
        goal: what is aimed at.
        fullness: the nodes as they are.
        pool: the pods that may go.
        offers: what they would bring.
        foresight: where they would land.
        ceilings: how full destinations may become.
        zones: how owners' pods are spread, which must not get worse.
    """

    def __init__(
        self,
        cluster: Cluster,
        evict: Evict,
        goal: Goal,
        fullness: Fullness,
        pool: Pool,
        offers: Offers,
        foresight: Foresight,
        ceilings: Percentages,
        zones: ZoneSpread,
    ) -> None:
        self._cluster = cluster
        self._evict = evict
        self._goal = goal
        self._fullness = fullness
        self._pool = pool
        self._offers = offers
        self._foresight = foresight
        self._ceilings = ceilings
        self._zones = zones

    def next_wave(self, nodes: Sequence[Node], open_to: Sequence[Node]) -> Draft | None:
        """Return the next wave; None if no move pays.

        Args:
            nodes: all that pods could go to.
            open_to: those of them that may be destinations.
        """
        receivers = sorted((self._highest(node.name), node.name) for node in open_to)
        names = [name for highest, name in receivers if highest <= 0]
        if not names:
            return None
        hot = frozenset(name for name in self._fullness.sources if self._goal.is_over(self._fullness.fill(name)))
        kept = frozenset(names)
        levels = Avoidance.of((node.name for node in nodes if node.name not in kept), hot, "", strong=False)
        draft = Draft((), levels, tuple(names))
        with self._foresight.avoiding(levels.levels):
            return self._filled(draft, self._offers.givers()[:_MOST_SOURCES])

    def _highest(self, name: str) -> float:
        peak = self._fullness.peak(name)
        return max(each - mean for each, mean in zip(peak, self._goal.mean, strict=True))

    def _filled(self, draft: Draft, sources: Sequence[str]) -> Draft | None:
        """Return the wave with the pods that bring most, at most one of each node, so that gains stay as they are."""
        most = min(_MOST_MOVES, max(1, len(draft.receivers) // _RECEIVERS_PER_MOVE))
        gave: set[str] = set()
        middle = draft.receivers[len(draft.receivers) // 2]
        for offer in self._offers.offers(self._pool.on(sources), (middle,)):
            source = offer.candidate.pod.node
            if len(draft.offers) == most or (draft.offers and offer.gain < _WORTH_JOINING * draft.offers[0].gain):
                break
            if source not in gave:
                expected = draft.receivers[len(draft.offers) % len(draft.receivers)]
                longer = draft.with_offer(Offer(offer.candidate, expected, offer.gain))
                if self._is_allowed(longer):
                    draft = longer
                    gave.add(source)
                else:
                    self._pool.exclude(offer.candidate.pod)
        return draft if draft.offers else None

    def _is_allowed(self, draft: Draft) -> bool:
        pod = draft.pods[-1]
        fullest = draft.receivers[-1]
        if not self._fullness.has_room(fullest, [pod], self._ceilings, _SPARE) or self._worsens_a_zone(draft):
            return False
        if self._evict.first_refusal(draft.pods):
            return False
        return self._outranks(pod, draft)

    def _worsens_a_zone(self, draft: Draft) -> bool:
        pod = draft.pods[-1]
        nodes = [node for name in draft.receivers if (node := self._cluster.node(name))]
        one_of_each = {node.labels.get(ZONE): node for node in nodes}
        with made(self._cluster, draft.expected[:-1]):
            return any(self._zones.worsened_by(pod, node) for node in one_of_each.values())

    def _outranks(self, pod: Pod, draft: Draft) -> bool:
        """Return whether enough receivers outrank all avoided nodes, and the pod fits on no other node."""
        answer = self._foresight.ask(pod)
        if not answer.nodes:
            return False
        received = [score for name in draft.receivers if (score := total(answer, name)) is not None]
        avoided = [score for name in draft.avoidance.levels if (score := total(answer, name)) is not None]
        ahead = sum(score > max(avoided, default=0) for score in received)
        return ahead >= _LEAST_SHARE * answer.feasible and len(received) + len(avoided) == answer.feasible
