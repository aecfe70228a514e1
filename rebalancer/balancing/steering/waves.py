"""The next wave: moves that go to one destination together, in any order of arrival, and which nodes are avoided.

1. The move that brings most is the first of the wave; it says which node is the destination.  (Where the scheduler
   scores only a part of the nodes, see `rebalancer.balancing.steering.broad`.)
2. All other nodes are avoided, hot ones more.  If the pod would not land on the destination, all are avoided alike; if
   it still would not, the next move is tried.
3. Pods join that bring at least half as much there.  Each replacement must land on the destination whatever the others
   have done by then (see `rebalancer.scheduling.any_order`), so the order of arrival does not matter.
4. The destination must have room for the wave and a quarter more, for pods that others create meanwhile.
5. Taints that the wave does not need are left out; those that nodes carry already stay if the pods still land.

An example: targets are 60 %, n1 is at 90 %, n2 at 45 %, n3 at 20 %.  The best move takes a pod of 10 points from n1 to
n3.  n1 gets two taints, n2 one, n3 none.  Two more pods of 10 points join: three need room for 37.5 points (30 and a
quarter), and n3 has room for 40.  A fourth would need 50, so it waits for the next wave.
"""

from collections.abc import Collection, Iterator, Sequence

from rebalancer.balancing.steering.avoidance import Avoidance, needless
from rebalancer.balancing.steering.broad import BroadWaves
from rebalancer.balancing.steering.draft import Draft
from rebalancer.balancing.steering.foresight import Avoid
from rebalancer.balancing.steering.offers import Offer
from rebalancer.balancing.steering.parts import Parts
from rebalancer.balancing.steering.trial import made
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE
from rebalancer.scheduling.simulator.answer import Answer

#: A wave has at most so many moves.
MOST_MOVES = 16
#: Room for the wave, and a quarter more.
SPARE = 1.25
#: At most so many offers are tried for the first move of a wave.
_TRIES = 60
#: A pod joins a wave if it brings at least this share of what the first one brings.
_WORTH_JOINING = 0.5


class Waves:
    """Puts waves together.

    Args:
        parts: what waves are planned with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._broad = BroadWaves(parts)
        self._open = [node for node in parts.cluster.nodes if not node.unschedulable]
        known = parts.fullness.sources.keys() - parts.cluster.held
        self._receivers = [node for node in self._open if _takes_pods(node) and node.name in known]

    def next_wave(self, former: Avoid) -> Draft | None:
        """Return the next wave; None if no move pays.

        Args:
            former: what is avoided already.
        """
        if self._is_sampled() and (draft := self._broad.next_wave(self._open, self._receivers)):
            return draft
        found: dict[tuple[Pod, str], Offer] = {}
        for sources, destinations in self._parts.offers.compared(self._known_nodes(), self._receivers):
            found |= {each.what: each for each in self._parts.offers.offers(self._parts.pool.on(sources), destinations)}
        best = max((offer.gain for offer in found.values()), default=0.0)
        ranked = sorted(found.values(), key=lambda offer: offer.order(best))
        sources = list(dict.fromkeys(offer.candidate.pod.node for offer in ranked))
        refused: set[Pod] = set()
        asked = 0
        for offer in ranked:
            pod = offer.candidate.pod
            if pod in refused or asked == _TRIES:
                continue
            if self._parts.evict.first_refusal([pod]):
                refused.add(pod)
                self._parts.pool.exclude(pod)
                continue
            asked += 1
            if self._parts.foresight.ask(pod).sampled:
                return self._broad.next_wave(self._open, self._receivers)
            if (draft := self._first(offer)) is not None:
                return self._spared(self._filled(draft, sources), former)
        return None

    def _is_sampled(self) -> bool:
        """Return whether the scheduler scores a part of the nodes only: judged by the first pod that may go.

        Asked before offers for single destinations are worked out, which take longest.
        """
        first = next(self._parts.pool.on(self._parts.offers.givers()), None)
        return first is not None and self._parts.foresight.ask(first.pod).sampled

    def close(self, names: Collection[str]) -> None:
        """Send no pods to these nodes any more; they are avoided like all others."""
        self._receivers = [node for node in self._receivers if node.name not in names]

    def _known_nodes(self) -> Iterator[Node]:
        return (each.node for each in self._parts.fullness.sources.values())

    def _first(self, offer: Offer) -> Draft | None:
        """Return a wave of one move; None if its pod lands under neither of the two ways to avoid the other nodes."""
        names = [node.name for node in self._open]
        hot = frozenset(name for name in self._parts.fullness.sources if self._is_hot(name))
        for strong in (False, True):
            draft = Draft((offer,), Avoidance.of(names, hot, offer.destination, strong=strong), (offer.destination,))
            if self._is_allowed(draft) and self._lands(draft):
                return draft
        return None

    def _is_hot(self, name: str) -> bool:
        goal = self._parts.goal
        return goal.is_over(self._parts.fullness.fill(name)) or goal.is_over(self._parts.fullness.peak(name))

    def _filled(self, draft: Draft, sources: Sequence[str]) -> Draft:
        """Return the wave with all pods of these nodes that bring about as much on its destination."""
        refused: set[Pod] = set()
        while len(draft.offers) < MOST_MOVES:
            more = next(self._joining(draft, sources, refused), None)
            if more is None:
                break
            draft = more
        return draft

    def _joining(self, draft: Draft, sources: Sequence[str], refused: set[Pod]) -> Iterator[Draft]:
        with made(self._parts.cluster, draft.expected):
            candidates = [each for each in self._parts.pool.on(sources) if each.pod not in refused]
            ranked = self._parts.offers.offers(candidates, (draft.destination,))
        for offer in ranked:
            if offer.gain < _WORTH_JOINING * draft.offers[0].gain:
                return
            longer = draft.with_offer(offer)
            if self._is_allowed(longer) and self._lands(longer):
                yield longer
            refused.add(offer.candidate.pod)

    def _is_allowed(self, draft: Draft) -> bool:
        """Return whether the last pod may go with the others, has room with them, and makes no spreading worse."""
        pods = draft.pods
        if not self._parts.fullness.has_room(draft.destination, pods, self._parts.ceilings, SPARE):
            return False
        node = self._parts.cluster.node(draft.destination)
        assert node is not None
        with made(self._parts.cluster, draft.expected[:-1]):
            if self._parts.zones.worsened_by(pods[-1], node):
                return False
        return self._parts.evict.first_refusal(pods) is None

    def _lands(self, draft: Draft) -> bool:
        """Return whether pods land on the destination, whatever the others of the wave have done by then."""
        wanted = (draft.destination,)
        foresight = self._parts.foresight
        if len(draft.offers) == 1:
            return all(answer.nodes == wanted for answer in self._answers(draft, draft.avoidance))
        with made(self._parts.cluster, draft.expected), foresight.avoiding(draft.avoidance.levels):
            # The last one has just joined: if one fails, it is this one as a rule.
            return all(answer.nodes == wanted for answer in foresight.in_any_order(draft.pods[::-1]))

    def _answers(self, draft: Draft, avoidance: Avoidance) -> Iterator[Answer]:
        """Yield for each pod where it lands as the first to arrive, and as the last."""
        pods = draft.pods
        with self._parts.foresight.avoiding(avoidance.levels):
            for index in range(len(pods)):
                yield self._parts.foresight.ask(pods[index])
                others = [(pod, draft.destination) for pod in (*pods[:index], *pods[index + 1 :])]
                if others:
                    with made(self._parts.cluster, others):
                        yield self._parts.foresight.ask(pods[index])

    def _spared(self, draft: Draft, former: Avoid) -> Draft:
        """Return the wave without the taints that it does not need; those there already stay if the pods still land."""
        middling = [name for name in draft.avoidance.levels if not self._is_hot(name)]
        free = needless(self._answers(draft, draft.avoidance), middling, draft.destination)
        fewer = draft.avoidance.without(free)
        for avoidance in (fewer.with_former(former, draft.destination), fewer):
            thinner = Draft(draft.offers, avoidance, draft.receivers)
            if self._lands(thinner):
                return thinner
        return draft


def _takes_pods(node: Node) -> bool:
    """Return whether a node may be a destination: not with soft taints of others, who want it to receive nothing."""
    return not any(taint.effect == PREFER_NO_SCHEDULE for taint in node.taints)
