"""The next wave: moves to a few nodes, planned in all possible histories at once, and which nodes are avoided.

1. The move that brings most is the first of the wave.  Its destination receives, and with it up to three of the
   other nodes to which pods bring about as much; all others are avoided.  If the pod does not do well wherever it may
   land then, its destination alone receives, with more and more taints on others; then the next move is tried.
2. Pods join that bring at least half as much wherever they may land, in each possible history and drawn order of
   arrival, with room to spare, and with spreading over zones no worse.
3. Taints that the wave does not need are left out; those that nodes carry already stay if the pods still land well.

An example: targets are 60 %, n1 is at 90 %, n2 at 45 %, n3 at 20 %, and the mean is 52 %.  The best move takes a pod of
10 points from n1 to n3; n2 is below the mean too, so both receive.  In all histories n3 takes the pod, and two more of
10 points.  A fourth may land on n2 in some: n2 has room for 12.5 points, so it joins, and the report names both nodes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from math import ceil
from operator import attrgetter

import numpy as np

from rebalancer.balancing.candidates import Candidate
from rebalancer.balancing.steering.broad import BroadWaves
from rebalancer.balancing.steering.foresight import SPARE_POINTS, Avoid, avoiding_others, may_win, takes_pods
from rebalancer.balancing.steering.offers import MOST_DESTINATIONS, Draft, Offer, Planning
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.eligibility import EligibleNodes
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.worlds import Seen

#: A wave has at most so many moves, to so many nodes.
MOST_MOVES = 16
_MOST_OF_A_WAVE = 3
#: Room for the wave, and a quarter more, for pods that others create meanwhile.
SPARE = 1.25
#: At most so many offers are tried for the first move of a wave, and in a row for the next one.  With 60 for both,
#: steering ended early where pods that can go nowhere are in front: 7 of 40 half-empty nodes stayed over, now none.
_FIRST_TRIES = 150
_TRIES = 60
#: The first move has to bring this share of what it would bring on its destination wherever the pod may land.
_AS_GOOD = 0.9
#: A pod joins a wave if it brings at least this share of what the first one brings.
_WORTH_JOINING = 0.5
#: In larger clusters the scheduler scores a part of the nodes only, as a rule: pods are sent to many at once.
_MANY = 100


class Waves:
    """Puts waves together."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning
        self._broad = BroadWaves(planning)
        self._failed: set[tuple[Pod, str]] = set()
        # By owner, where one of its pods would land badly in the wave as it is: its other pods would land there too.
        self._strays: dict[object, Collection[str]] = {}
        self._eligible = planning.cluster.index(EligibleNodes)
        self._open = [node for node in planning.cluster.nodes if not node.unschedulable]
        # A node that is over its band now receives nothing in this run: pods that leave it take time to end.
        taking = planning.fullness.sources.keys() - planning.cluster.held - self._hot()
        self._takers = [node for node in self._open if takes_pods(node) and node.name in taking]

    def close(self, names: Collection[str]) -> None:
        """Send no pods to these nodes any more; they are avoided like all others."""
        self._takers = [node for node in self._takers if node.name not in names]

    def next_wave(self, former: Avoid) -> Draft | None:
        """Return the next wave, given what is avoided already; None if no move pays."""
        are_many = len(self._open) > _MANY
        if are_many and (draft := self._broad.next_wave(self._open, self._takers)):
            return draft
        found, asked = self._offers(), 0
        sources = list(dict.fromkeys(offer.candidate.pod.node for offer in found))
        for offer in self._untried_first(found):
            pod = offer.candidate.pod
            if asked == _FIRST_TRIES:
                break
            if not self._spreads_well(offer):
                continue
            if self._planning.evict.first_refusal([pod]):  # not even by itself
                self._planning.pool.exclude(pod)
                continue
            asked += 1
            if reduce(Answer.or_else, self._planning.foresight.simulation.answers(pod)).sampled:
                return None if are_many else self._broad.next_wave(self._open, self._takers)
            for empty in self._empty_drafts(self._destinations(offer, found)):
                if draft := self._wave(empty, offer, sources, former):
                    return draft
            self._failed.add((pod, offer.destination))
        return None

    def _untried_first(self, found: Sequence[Offer]) -> Iterator[Offer]:
        """Yield offers in order, those last that could not be the first of an earlier wave."""
        failed = frozenset(self._failed)
        for is_last in (False, True):
            group = (each for each in found if ((each.candidate.pod, each.destination) in failed) is is_last)
            yield from self._planning.offers.in_order(group)

    def _offers(self) -> list[Offer]:
        """Return the moves that bring most, by that, each to a node that the pod may use, whatever runs there."""
        offers, pool = self._planning.offers, self._planning.pool
        givers = [name for name in offers.givers() if pool.on_node(name)]
        takers = offers.takers(self._takers)
        reaching: dict[frozenset[str], list[Candidate]] = {}
        for candidate in pool.on(offers.sources(givers, takers)):
            reaching.setdefault(self._eligible.by_constraints(candidate.pod.spec), []).append(candidate)
        found: list[Offer] = []
        for names, candidates in reaching.items():
            found += offers.offers(candidates, self._emptiest([name for name in takers if name in names]))
        return sorted(found, key=attrgetter("gain"), reverse=True)

    def _emptiest(self, takers: Sequence[str]) -> list[str]:
        """Return which of these nodes are looked at as destinations, as many in each zone: pods may have to stay in it.

        Nodes that no pod of a group may use are no destinations for it: twelve empty ones would leave it no others.
        """
        places = list(self._planning.zones.by_place(takers).values())[:MOST_DESTINATIONS]
        most = ceil(MOST_DESTINATIONS / len(places)) if places else 0
        return [name for place in places for name in self._planning.offers.destinations(place, most)]

    def _destinations(self, first: Offer, found: Iterable[Offer]) -> list[str]:
        """Return where a wave with this first move may go: there, and where others of these moves bring about as much.

        Nodes that the first pod cannot use, or would spread worse, are left out.
        """
        least = _WORTH_JOINING * first.gain
        names = self._eligible.by_constraints(first.candidate.pod.spec)
        good = takewhile(lambda each: each.gain > least, found)
        others = self._planning.offers.in_order(each for each in good if each.destination in names)
        known = {first.destination: True}
        for name in (each.destination for each in others):
            if sum(known.values()) == _MOST_OF_A_WAVE:
                break
            if name not in known:
                known[name] = self._spreads_well(Offer(first.candidate, name, 0.0))
        return [name for name, spreads_well in known.items() if spreads_well]

    def _spreads_well(self, offer: Offer) -> bool:
        """Return whether the owner's pods are spread over zones no worse after a move."""
        node = self._planning.cluster.node(offer.destination)
        return node is not None and not self._planning.zones.worsened_by(offer.candidate.pod, node)

    def _empty_drafts(self, destinations: Sequence[str]) -> Iterator[Draft]:
        """Yield empty waves to this node: with others that receive too, then alone, with more and more taints."""
        names = [node.name for node in self._open]
        for count in range(len(destinations), 1, -1):
            chosen = tuple(destinations[:count])
            yield Draft((), avoiding_others(names, chosen), chosen)
        destination = destinations[0]
        for hot in (self._hot(), None):
            yield Draft((), avoiding_others(names, (destination,), hot), (destination,))

    def _hot(self) -> set[str]:
        """Return the nodes that are over their band, or would be at their peak."""
        goal, fullness = self._planning.goal, self._planning.fullness
        names = list(fullness.sources)
        over = goal.over(fullness.fills(names)) | goal.over(fullness.peak_fills(names))
        return {names[number] for number in np.flatnonzero(over).tolist()}

    def _wave(self, empty: Draft, first: Offer, sources: Sequence[str], former: Avoid) -> Draft | None:
        """Return the wave with a first move, and with the pods of these nodes that bring about as much.

        None if the first pod does not do well wherever it may land.  Taints that the wave does not need are left out;
        those there already stay if its pods land as well.
        """
        with self._planning.foresight.avoiding(empty.avoid):
            draft = self._joined(empty, first, sources)
        if not draft.offers:
            return None
        needless = draft.avoid.keys() - self._hot()
        for answer in draft.answers:
            needless -= may_win(answer, needless)
        fewer = {name: level for name, level in draft.avoid.items() if name not in needless}
        kept = {name: max(each, fewer.get(name, 0)) for name, each in former.items() if name not in draft.destinations}
        for avoid in ({**fewer, **kept}, fewer):
            sparing = replace(draft, avoid=avoid)
            if not self._land_as_before(draft, avoid):
                sparing = self._again(Draft((), avoid, draft.destinations), draft.offers)
            if len(sparing.offers) == len(draft.offers) and (verified := self._verified(sparing)):
                return verified
        return self._verified(draft)

    def _land_as_before(self, draft: Draft, after: Avoid) -> bool:
        """Return whether the pods land in all histories as they do in this wave, though fewer nodes are avoided.

        They do if no node is avoided more, those that are not avoided any more stay behind the best, and the scheduler
        counts taints in the same proportion, since a node remains that carries the most.
        """
        before = draft.avoid
        lifted = [name for name in before if name not in after]
        most = max(before.values(), default=0)
        if any(before.get(name) != level for name, level in after.items()) or not all(map(self._is_plain, lifted)):
            return False
        strongest = [name for name, level in after.items() if level == most]
        return all(
            any(map(answer.scores, strongest)) and not may_win(answer, lifted, spare=1) for answer in draft.answers
        )

    def _is_plain(self, name: str) -> bool:
        """Return whether a node has no soft taint but those of waves."""
        node = self._planning.cluster.node(name)
        return node is not None and takes_pods(node) and name not in self._planning.cluster.held

    def _verified(self, draft: Draft) -> Draft | None:
        """Return the wave without pods that land elsewhere in a drawn order; None if none is left."""
        while draft.offers:
            with self._planning.foresight.avoiding(draft.avoid):
                failing = self._astray(draft)
                if failing is None:
                    worlds = self._planning.foresight.worlds
                    shares = {pod: _with_others(worlds.shares(pod), draft.shares[pod]) for pod in draft.pods}
                    return replace(draft, shares=shares)
            others = [each for each in draft.offers if each.candidate.pod is not failing]
            draft = self._again(Draft((), draft.avoid, draft.destinations), others)
        return None

    def _astray(self, draft: Draft) -> Pod | None:
        """Return a pod that lands on another node or has no room, in a drawn order of arrival; None if none does."""
        with self._planning.cluster.scope():
            for pod in draft.pods:
                self._planning.cluster.remove(pod)
            for arrived in self._planning.foresight.worlds.in_drawn_orders(draft.expected):
                there: dict[str, list[Pod]] = {}
                for pod, seen in arrived:
                    if not seen.node or not set(draft.destinations).issuperset(seen.answer.nodes):
                        return pod
                    there.setdefault(seen.node, []).append(pod)
                for name, pods in there.items():
                    if not self._planning.fullness.has_room(name, pods, SPARE):
                        return pods[-1]
        return None

    def _joined(self, empty: Draft, first: Offer, sources: Sequence[str]) -> Draft:
        """Return a wave with this move, if it does well, and with the pods of these nodes that do so beside it."""
        self._strays.clear()
        with self._planning.cluster.scope():
            draft = self._with(empty, first, _AS_GOOD * first.gain) or empty
            size, refused = 0, set[Pod](draft.pods)
            while size < len(draft.offers) < MOST_MOVES:
                size = len(draft.offers)
                draft = self._with_more(draft, sources, _WORTH_JOINING * first.gain, refused)
        return draft

    def _again(self, draft: Draft, offers: Iterable[Offer]) -> Draft:
        self._strays.clear()
        with self._planning.foresight.avoiding(draft.avoid), self._planning.cluster.scope():
            for offer in offers:
                draft = self._with(draft, offer) or draft
        return draft

    def _with_more(self, draft: Draft, sources: Sequence[str], least: float, refused: set[Pod]) -> Draft:
        """Return the wave with the pods that do well in it, ranked once; then others of these nodes may do so too."""
        candidates = [each for each in self._planning.pool.on(sources) if each.pod not in refused]
        found, in_a_row = self._planning.offers.offers(candidates, draft.destinations, least), 0
        for offer in self._planning.offers.in_order(found):
            pod = offer.candidate.pod
            if len(draft.offers) == MOST_MOVES or in_a_row == _TRIES:
                break
            if pod not in refused and not self._has_sibling(draft, pod):
                refused.add(pod)  # or it has joined
                more = self._with(draft, offer, least)
                draft, in_a_row = more or draft, 0 if more else in_a_row + 1
        return draft

    def _has_sibling(self, draft: Draft, pod: Pod) -> bool:
        """Return whether nobody knows over which zones a pod and another one of the wave would be spread."""
        return len(draft.destinations) > 1 and self._planning.zones.matter and _owner(pod) in map(_owner, draft.pods)

    def _with(self, draft: Draft, offer: Offer, least: float = 0.0) -> Draft | None:
        """Return the wave with one more move, which is expected from now on; None if it may do badly."""
        planning, pod = self._planning, offer.candidate.pod
        if self._has_sibling(draft, pod):
            return None
        offers = planning.offers.offers([offer.candidate], draft.destinations)
        gains = {each.destination: each for each in planning.offers.in_order(filter(self._spreads_well, offers))}
        answers: list[Answer] = []
        fine = [name for name, each in gains.items() if each.gain >= least]
        shares = self._lands_well(draft, pod, fine, answers)
        if not shares:
            return None
        expected = next((name for name in shares if self._is_fine(draft, name, pod, answers)), next(iter(shares)))
        others = [name for name in gains if name not in shares and self._is_fine(draft, name, pod, answers)]
        node = planning.cluster.node(expected)
        if node is None or planning.evict.try_out(pod):
            return None
        planning.cluster.place(pod, node)
        self._strays.clear()
        return replace(
            draft,
            offers=(*draft.offers, gains[expected]),
            shares={**draft.shares, pod: _with_others(shares, sorted(others))},
            answers=(*draft.answers, *answers),
        )

    def _is_fine(self, draft: Draft, name: str, pod: Pod, answers: Iterable[Answer]) -> bool:
        """Return whether a pod could run and do well on a node where it lands in no history that was drawn."""
        there = [each for each, at in draft.expected.items() if at == name]
        return any(a.scores(name) for a in answers) and self._planning.fullness.has_room(name, [pod], SPARE, there)

    def _lands_well(self, draft: Draft, pod: Pod, fine: Collection[str], judged: list[Answer]) -> Mapping[str, float]:
        """Return on which of these nodes the pod may land, and how likely; empty if it may land elsewhere."""
        planning, close = self._planning, set[str]()
        if not fine or not set(self._strays.get(_owner(pod), ())).issubset(fine):
            return {}
        for seen in planning.foresight.worlds.placements(pod):
            if any(seen.answer is each for each in judged):  # histories that are the same so far have one answer
                continue
            judged.append(seen.answer)
            # A small change may put those first that score about as much as the best.
            close_behind = set(draft.destinations).intersection(seen.answer.close_to_best("", SPARE_POINTS))
            names = close_behind.union(seen.answer.nodes)
            if not seen.node or not names.issubset(fine):
                self._strays[_owner(pod)] = names
                return {}
            if not all(self._has_room(draft, seen, name, pod) for name in names):
                return {}
            close |= names
        return _with_others(planning.foresight.worlds.shares(pod) if close else {}, sorted(close))

    def _has_room(self, draft: Draft, seen: Seen, name: str, pod: Pod) -> bool:
        """Return whether a node has room for a pod, beside those of the wave that are there in that world."""
        worlds = self._planning.foresight.worlds
        more, fewer = worlds.others_on(seen.number, name)
        there = worlds.landed_on(seen.number, name, draft.pods)
        with self._planning.fullness.exchanged(name, fewer, more):
            return self._planning.fullness.has_room(name, [pod], SPARE, there)


def _with_others(shares: Mapping[str, float], names: Iterable[str]) -> Mapping[str, float]:
    """Return how likely a pod lands where, with these nodes too, where it lands in no history that was drawn."""
    return {**shares, **{name: 0.0 for name in names if name not in shares}}


def _owner(pod: Pod) -> object:
    return pod.controller.uid if pod.controller else pod.key
