"""Waves where the scheduler scores only a part of the nodes: it is not known which, so pods are sent to many at once.

1. A wave starts with the pod that brings most.  Its destinations are the nodes that have room for 2.25 times that pod,
   among the emptiest: nodes at most half way from the mean to the target in every resource, at most 200 of them, or the
   emptiest 15 % if these are more.  All other nodes are avoided alike, with two taints: with one on some, these would
   lose 150 points, which is often not enough.  If the pod cannot go, the wave starts with the next one.
2. Other pods join that bring about as much, at most one of each node, if every destination has room for them.  A pod
   goes only if each part of the nodes that may be scored has three destinations that outrank every avoided node: the
   scheduler's threads skip a node at times, and some may fill.  The part with the fewest limits the wave: there is a
   destination for each pod even where all parts have as few.
3. Pods are expected one after the other, each on the destination that scores best in the next part, with room there for
   2.5 times all that is expected: where much is requested of others, most pods of a wave come to one node.
4. The pod may land on any destination.  So on none may the spreading over zones get worse.  Where there are zones, a
   wave has one pod of each owner: where the others land is not known.  Where no pod may go to all zones, since its
   owner is spread evenly, the emptiest nodes of one zone receive, in turn.

An example: of 1000 nodes 150 receive, so a wave has at most 75 moves.  The scheduler looks at 420 nodes in a row.  If
140 are the newest nodes, and so the last of its list, it may see only the ten others.  If all parts had ten, 23 would
receive, so the wave has 23 moves.  Without the ten no pod goes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, compress, groupby, islice
from math import ceil, floor, log2
from typing import NamedTuple

import numpy as np

from rebalancer.balancing.steering.foresight import avoiding_others
from rebalancer.balancing.steering.offers import Draft, Offer, Planning
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.plugin import Mask
from rebalancer.scheduling.simulator.sampling import Parts

#: A wave has at most so many moves, and one for so many destinations.
_MOST_MOVES = 100
_DESTINATIONS_PER_MOVE = 2
#: So many good destinations are in each part of the nodes that may be scored; one where all nodes are scored.
_LEAST_IN_PART = 3
#: How far from the mean to the target nodes may be that receive; and the least share of the nodes that may.
_LOW = 0.5
_RECEIVING = 0.15
#: Each destination has room for so many times the pod; if others are expected there too, for so many times all of them.
#: With 2 for both, 2 to 4 % of the pods landed on nodes over their band where requests are uneven or pods are large;
#: with these figures it is about 1 %.
_SPARE = 2.25
_SPARE_THERE = 2.5
#: So many nodes are looked at as sources for each move of a wave; if none of their pods may go, so many in all.
_SOURCES_PER_MOVE = 2
_MOST_SOURCES = 200
#: All destinations together, among the places that receive.
_ALL = ""
#: A wave is started at most so many times, with other destinations each time.
_MOST_DRAFTS = 30
#: A wave ends when so many pods in a row find no room where they are expected.
_TRIES = 10


class _Prospect(NamedTuple):
    """What may become of a pod's replacement."""

    likely: Sequence[str] = ()  # where it may land, the best score first; empty if the pod has to stay
    expected: str = ""  # the first of them in the part of the nodes that is scored next
    most: int = 0  # the most pods that may go in a wave with it
    is_held_back: bool = False  # whether its eviction would be refused after those before it
    is_crowded: bool = False  # whether it would find no room where it is expected


class BroadWaves:
    """Puts waves together that go to many nodes."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning
        self._turns: Counter[object] = Counter()
        # By the places that receive; no pod becomes fit later.
        self._unfit: defaultdict[object, set[Pod]] = defaultdict(set)

    def next_wave(self, nodes: Sequence[Node], open_to: Sequence[Node]) -> Draft | None:
        """Return the next wave; None if no move pays.

        All destinations together come first, then those of each place: a pod that stays in its zone spreads no worse.
        The place that received last comes last, and where all together failed, all places come before them once.  Of
        all nodes that pods could go to some are open as destinations.
        """
        names = [node.name for node in open_to]
        by_place = self._planning.zones.by_place(names)
        groups: dict[object, Sequence[str]] = {_ALL: names, **(by_place if len(by_place) > 1 else {})} if names else {}
        givers, all_names = self._planning.offers.givers(), sorted(node.name for node in nodes)
        for place in sorted(groups, key=lambda each: (self._turns[each], each != _ALL, str(each))):
            draft = self._filled(groups[place], all_names, givers)
            self._turns[place] += (draft is None) is (place == _ALL)
            if draft:
                return draft
        return None

    def _emptiest(self, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Return those of some nodes that may receive, the emptiest first, and the middle one below the mean."""
        goal = self._planning.goal
        highest = goal.highest(self._planning.fullness.peak_fills(names))
        below_mean = int(np.count_nonzero(highest <= 0))
        low = int(np.count_nonzero(highest <= max(0.0, _LOW * (goal.high - goal.mean).min())))
        count = max(ceil(_RECEIVING * len(names)), min(low, _MOST_MOVES * _DESTINATIONS_PER_MOVE))
        group = tuple([names[number] for number in np.argsort(highest, kind="stable")[:count].tolist()])
        return group, group[min(below_mean, count) // 2]

    def _filled(self, names: Sequence[str], nodes: Sequence[str], givers: Sequence[str]) -> Draft | None:
        """Return the next wave to those of these nodes that have room for its first pod: the one that brings most.

        If that may not go, the next one is tried that leads to other nodes.
        """
        planning, (group, middle) = self._planning, self._emptiest(names)
        unfit = self._unfit[frozenset(planning.zones.by_place(group))]
        for count in sorted({_SOURCES_PER_MOVE * _most(group), _MOST_SOURCES}):
            there = planning.pool.on(givers[:count])
            fit = [each for each in there if each.pod not in unfit] if unfit else there
            found = planning.offers.offers(fit, (middle,))
            for destinations, offers in islice(self._starts(group, found), _MOST_DRAFTS):
                draft = self._drafted(destinations, nodes, offers)
                if draft.offers:
                    return draft
        return None

    def _starts(self, group: Sequence[str], found: Iterator[Offer]) -> Iterator[tuple[tuple[str, ...], list[Offer]]]:
        """Yield ways to start a wave: the nodes with room for its first pod, and the moves that fit on all of them.

        Pods with equal constraints and the same nodes are one way.  Thousands of pods are compared with the nodes at
        once.  For example, n1 alone has room for `a`, and n1 and n2 have room for `b` and `c`, which are smaller.  The
        first way is n1 for all three, the second is n1 and n2 for `b` and `c`.
        """
        fullness, eligible = self._planning.fullness, self._planning.cluster.index(EligibleNodes)
        room, tried = fullness.room(group)[:, np.newaxis, :], set[object]()
        for offers in map(list, map(self._planning.offers.in_order, _halving(found))):
            pods = [each.candidate.pod for each in offers]
            if not pods:  # none of these moves gains what it costs
                continue
            needs = _SPARE * fullness.arriving(fullness.amounts(pods))[:, :, np.newaxis]
            have_room: Mask = np.all(needs <= room, axis=0)
            for number, pod in enumerate(pods):
                start = have_room[number].tobytes(), eligible.by_constraints(pod.spec)
                if start in tried:
                    continue
                tried.add(start)
                destinations = tuple(compress(group, have_room[number].tolist()))
                if self._are_enough(destinations, pod):
                    joining: Mask = np.all(have_room[number:, have_room[number]], axis=1)
                    yield destinations, list(compress(offers[number:], joining.tolist()))

    def _are_enough(self, destinations: Sequence[str], pod: Pod) -> bool:
        """Return whether each part that may be scored has destinations; this is cheaper than to start a wave."""
        simulation = self._planning.foresight.simulation
        answer = next(simulation.answers(pod))
        receiving = simulation.among(destinations)
        return answer.parts is not None and _least(answer) <= answer.parts.fewest(answer.parts.nodes.of(receiving))

    def _drafted(self, destinations: tuple[str, ...], nodes: Sequence[str], offers: Iterable[Offer]) -> Draft:
        avoid = avoiding_others(nodes, frozenset(destinations))
        empty = Draft((), avoid, destinations)
        with self._planning.foresight.avoiding(avoid), self._planning.cluster.scope():
            return self._chosen(empty, offers, self._prospects(empty))

    def _chosen(self, empty: Draft, offers: Iterable[Offer], prospect_of: Callable[[Pod, Draft], _Prospect]) -> Draft:
        """Return the wave with the first of these offers, at most one of each node, so that gains stay as they are.

        Each is looked at with those before it gone, and where they are expected.  From a pod on that is held back no
        pod of its owner goes: what holds it back holds them back.
        """
        planning, draft, most, in_vain = self._planning, empty, _most(empty.destinations), 0
        gave: set[str] = set()
        waiting: set[Owner | None] = set()
        for offer in offers:
            pod = offer.candidate.pod
            if len(draft.offers) >= most:
                break
            owner = pod.controller.uid if pod.controller and planning.zones.matter else ""
            if pod.node in gave or owner in gave or pod.controller in waiting:
                continue
            prospect = prospect_of(pod, draft)
            if prospect.is_held_back and pod.controller:
                waiting.add(pod.controller)
            in_vain += prospect.is_crowded
            if in_vain == _TRIES:
                break
            node = None if prospect.is_crowded else planning.cluster.node(prospect.expected)
            most = min(most, prospect.most) if node else most
            if node and len(draft.offers) < most and not planning.evict.try_out(pod):
                planning.cluster.place(pod, node)
                expecting, in_vain = Offer(offer.candidate, node.name, offer.gain, offer.deal), 0
                draft = replace(draft, offers=(*draft.offers, expecting), likely={**draft.likely, pod: prospect.likely})
                gave |= {pod.node, owner} if owner else {pod.node}
        return draft

    def _prospects(self, empty: Draft) -> Callable[[Pod, Draft], _Prospect]:
        """Return what says where a pod may land.

        Of each place where nodes receive one is looked at; those that may not go there are added to the unfit ones.
        """
        planning, ahead = self._planning, self._outranking(empty)
        by_place = planning.zones.by_place(empty.destinations)
        places = [node for names in by_place.values() if (node := planning.cluster.node(names[-1]))]
        unfit = self._unfit[frozenset(by_place)]

        def prospect(pod: Pod, draft: Draft) -> _Prospect:
            fits = pod not in unfit and not any(planning.zones.worsened_by(pod, place) for place in places)
            is_refused = fits and planning.evict.first_refusal([pod]) is not None
            if is_refused and draft.offers:
                return _Prospect(is_held_back=True)
            found = ahead(pod, len(draft.offers)) if fits and not is_refused else _Prospect()
            if not found.likely:
                unfit.add(pod)
                return found
            there = [each for each, name in draft.expected.items() if name == found.expected]
            has_room_there = planning.fullness.has_room(found.expected, [pod], _SPARE_THERE if there else _SPARE, there)
            return found._replace(is_crowded=not has_room_there)

        return prospect

    def _outranking(self, empty: Draft) -> Callable[[Pod, int], _Prospect]:
        """Return what says which destinations outrank all avoided nodes, for the pod of this number of a wave.

        None do if a part of the nodes may be scored that has too few of them, or if the pod fits on another node.  What
        the scheduler says soon and what it says later are judged one by one: scores of both do not compare.
        """
        simulation = self._planning.foresight.simulation
        receiving, avoided = simulation.among(empty.destinations), simulation.among(empty.avoid)

        def ahead(answer: Answer) -> tuple[Parts, Mask, int] | None:
            """Return which nodes are ahead, and the most pods that may go in a wave; None if too few are."""
            parts = answer.parts
            if parts is None:
                return None
            receives, behind = parts.nodes.of(receiving), parts.nodes.of(avoided)
            are_ahead = receives & (parts.totals > parts.totals[behind].max(initial=0))
            fewest = parts.fewest(are_ahead)
            if not (receives | behind).all() or fewest < _least(answer):
                return None
            return parts, are_ahead, fewest * len(parts.nodes) // parts.size

        def outranking(pod: Pod, number: int) -> _Prospect:
            found: list[tuple[Parts, Mask, int]] = []
            for answer in simulation.answers(pod):
                if (each := ahead(answer)) is None:
                    return _Prospect()
                found.append(each)
            parts, are_ahead, _ = found[0]
            places = np.flatnonzero(are_ahead)
            best_first = places[np.argsort(-parts.totals[places], kind="stable")]
            there = parts.beginning(number * parts.size / len(parts.nodes) % 1.0)[best_first]
            names = simulation.names(parts.nodes.indexes[best_first].tolist())
            return _Prospect(names, names[there.argmax()], min(most for *_, most in found))

        return outranking


def _most(destinations: Sequence[str]) -> int:
    return min(_MOST_MOVES, max(1, len(destinations) // _DESTINATIONS_PER_MOVE))


def _least(answer: Answer) -> int:
    return _LEAST_IN_PART if answer.sampled else 1


def _halving(offers: Iterator[Offer]) -> Iterator[Iterator[Offer]]:
    """Yield offers that bring at least half as much as the first one, then those with at least a quarter, and so on."""
    first = next(offers, None)
    if first:
        for _, alike in groupby(chain((first,), offers), key=lambda each: floor(log2(first.gain / each.gain))):
            yield alike
