"""Waves where the scheduler scores only a part of the nodes: it is not known which, so pods are sent to many at once.

1. Nodes at or below the mean in every resource receive, or the emptiest 15 % of all if these are more.  All others
   are avoided alike, with two taints: then all of them lose 300 points.  With one taint on some, these would lose 150,
   which is often not enough.
2. The pods that bring most go, at most one of each node.  A wave has one move per four receivers, and at most 48.
3. A pod goes only if at least a tenth of the nodes that it fits on are receivers that outrank every avoided node.  So
   whichever part the scheduler scores very likely has some of them.
4. The pod may land on any receiver.  So even the fullest must have room for it twice, and on none may the spreading
   over zones get worse.  Where there are zones, a wave has one pod of each owner: where the others land is not known.
   Where no pod may go to all zones, since its owner is spread evenly, the receivers of one zone receive, in turn.
5. A pod that PDBs, shares or limits let not go with the others of its wave waits for a later one.

An example: of 1000 nodes 120 receive, so a wave has at most 30 moves.  A pod fits on all nodes, and 110 receivers
outrank the 880 that are avoided: 110 is more than a tenth of 1000, so the pod may go.  With 90 it would stay.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import ceil

from rebalancer.balancing.steering.avoidance import Avoidance
from rebalancer.balancing.steering.draft import Draft
from rebalancer.balancing.steering.offers import Offer, in_order
from rebalancer.balancing.steering.parts import Parts
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod

#: A wave has at most so many moves, and one for so many receivers.
_MOST_MOVES = 48
_RECEIVERS_PER_MOVE = 4
#: At least this share of the nodes that a pod fits on are good receivers: about ten of a hundred nodes that are scored.
_LEAST_SHARE = 0.1
#: At least this share of all nodes receives.
_RECEIVING = 0.15
#: Each receiver has to have room for so many times the pod.
_SPARE = 2.0
#: At most so many nodes are looked at as sources.
_MOST_SOURCES = 200
#: A pod joins a wave if it brings at least this share of what the first one brings.
_WORTH_JOINING = 0.5
#: A wave is put together anew at most so often because its pods may not go together; then it is cut short.
_TRIES = 60


class BroadWaves:
    """Puts waves together that go to many nodes.

    Args:
        parts: what waves are planned with.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turns: Counter[object] = Counter()
        self._unfit: defaultdict[object, set[Pod]] = defaultdict(set)

    def next_wave(self, nodes: Sequence[Node], open_to: Sequence[Node]) -> Draft | None:
        """Return the next wave; None if no move pays.

        Args:
            nodes: all that pods could go to.
            open_to: those of them that may be destinations.
        """
        goal, fullness = self._parts.goal, self._parts.fullness
        receivers = sorted((goal.highest(fullness.peak(node.name)), node.name) for node in open_to)
        least = ceil(_RECEIVING * len(nodes))
        names = [name for place, (highest, name) in enumerate(receivers) if highest <= 0 or place < least]
        drafts = (self._wave(nodes, group) for group in self._groups(names))
        return next((draft for draft in drafts if draft), None)

    def _groups(self, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield all receivers together, then those of each place: a pod that stays in its zone spreads nothing worse.

        The place that received last comes last.
        """
        if names:
            yield tuple(names)
        by_place = self._parts.zones.by_place(node for name in names if (node := self._parts.cluster.node(name)))
        for place in sorted(by_place, key=lambda each: (self._turns[each], str(each))) if len(by_place) > 1 else ():
            self._turns[place] += 1
            yield by_place[place]

    def _wave(self, nodes: Sequence[Node], receivers: tuple[str, ...]) -> Draft | None:
        avoided = frozenset(node.name for node in nodes).difference(receivers)
        avoidance = Avoidance.of(sorted(avoided), frozenset(), (), strong=True)
        with self._parts.foresight.avoiding(avoidance.levels):
            return self._filled(Draft((), avoidance, receivers))

    def _filled(self, empty: Draft) -> Draft | None:
        """Return the wave with the pods that bring most and may go together."""
        offers, may_go = self._offers(empty), self._may_go(empty)
        draft = self._chosen(empty, offers, may_go)
        for tries in range(_TRIES, 0, -1):
            refused = self._parts.evict.first_refusal(draft.pods)
            if refused is None:
                break
            if tries == 1:
                return draft.until(refused[0])
            offers = _held_back(offers, refused[0])
            draft = self._chosen(empty, offers, may_go)
        return draft if draft.offers else None

    def _offers(self, empty: Draft) -> list[Offer]:
        middle = empty.receivers[len(empty.receivers) // 2]
        sources = self._parts.offers.givers()[:_MOST_SOURCES]
        return list(in_order(self._parts.offers.offers(self._parts.pool.on(sources), (middle,))))

    def _chosen(self, empty: Draft, offers: Sequence[Offer], may_go: Callable[[Pod], bool]) -> Draft:
        """Return the wave with the first of these offers, at most one of each node, so that gains stay as they are."""
        draft, receivers = empty, empty.receivers
        most = min(_MOST_MOVES, max(1, len(receivers) // _RECEIVERS_PER_MOVE))
        gave: set[str] = set()
        for offer in offers:
            if len(draft.offers) == most or (draft.offers and offer.gain < _WORTH_JOINING * draft.offers[0].gain):
                break
            pod = offer.candidate.pod
            owner = pod.controller.uid if pod.controller and self._parts.zones.matter else ""
            if pod.node not in gave and owner not in gave and may_go(pod):
                expected = receivers[len(draft.offers) % len(receivers)]
                draft = draft.with_offer(Offer(offer.candidate, expected, offer.gain, offer.deal))
                gave |= {pod.node, owner} if owner else {pod.node}
        return draft

    def _may_go(self, empty: Draft) -> Callable[[Pod], bool]:
        """Return what says whether a pod may go, without looking at the others of the wave; one that may not stays."""
        nodes = [node for name in empty.receivers if (node := self._parts.cluster.node(name))]
        by_place = self._parts.zones.by_place(nodes)
        places = [node for node in nodes if node.name in {names[-1] for names in by_place.values()}]
        unfit = self._unfit[tuple(sorted(by_place, key=str))]  # these do not become fit later

        @cache
        def may_go(pod: Pod) -> bool:
            if pod in unfit:
                return False
            allowed = self._is_allowed(pod, empty, places)
            if not allowed:
                unfit.add(pod)
            return allowed

        return may_go

    def _is_allowed(self, pod: Pod, empty: Draft, places: Sequence[Node]) -> bool:
        parts, fullest = self._parts, empty.receivers[-1]
        return (
            parts.fullness.has_room(fullest, [pod], parts.ceilings, _SPARE)
            and not any(parts.zones.worsened_by(pod, place) for place in places)
            and parts.evict.first_refusal([pod]) is None
            and self._outranks(pod, empty)
        )

    def _outranks(self, pod: Pod, empty: Draft) -> bool:
        """Return whether enough receivers outrank all avoided nodes, and the pod fits on no other node."""
        answer = self._parts.foresight.ask(pod)
        if not answer.nodes:
            return False
        scores = answer.totals()
        received = [scores[name] for name in empty.receivers if name in scores]
        avoided = [scores[name] for name in empty.avoidance.levels if name in scores]
        best = max(avoided, default=0)
        ahead = sum(score > best for score in received)
        return ahead >= _LEAST_SHARE * answer.feasible and len(received) + len(avoided) == answer.feasible


def _held_back(offers: Sequence[Offer], refused: Pod) -> list[Offer]:
    """Return the offers without those, from this pod on, that are of its owner: what holds it back holds them back."""
    owner = refused.controller
    start = next(place for place, offer in enumerate(offers) if offer.candidate.pod is refused)
    kept = (each for each in offers[start + 1 :] if each.candidate.pod.controller != owner)
    return [*offers[:start], *kept]
