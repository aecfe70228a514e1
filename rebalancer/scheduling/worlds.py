"""Possible histories of a cycle: what may happen between the plan and the placement of each replacement.

Nobody knows which of equal nodes the scheduler takes, whether old pods have ended when a replacement comes, where in
its list of nodes the scheduler begins to look, and in which order replacements come.  So a number of worlds are drawn,
and in each of them all of that is fixed:

- **Old pods.**  In some worlds those that went still end whenever another is asked about, in some all are gone, and in
  the others some are.  A replacement that waits for the end of its old pod comes only where that is gone.
- **Ties.**  In half of the worlds each of the equal nodes is as likely; in the others the first one is taken to which
  the scheduler comes in its list.  Kubernetes 1.36 does the latter; with an extender or in older versions it is chance.
- **The list.**  By arrival in half of the worlds, by name in the others.  In large clusters the start is drawn for each
  pod, evenly over the worlds, so that windows cover the whole list.  In small ones all nodes are looked at for each
  pod, and the start moves only with pods that are tied to some nodes, as a DaemonSet's are.  So each world has one.
- **The order.**  While pods are granted, replacements come in turn.  When all are decided (`played`), half of the
  worlds are played once more with the orders drawn for them; both ways count for half.  In half of these again old pods
  end together, as they do where they have the same grace period: what is made at once comes while all still end, and
  what waits comes when all are gone.

Each draw is a hash of the pod's UID, the node's name and the number of the world.  So the same cluster gives the same
plan, and a change elsewhere alters no other draw.  What was drawn is followed as pods go and come.  Worlds that are
the same so far share one cluster and one answer.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.scheduling.shared_clusters import Exchange, SharedClusters
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.simulator import Simulator

#: How many worlds are drawn: two orders of the list, two ways to break ties and four fates of old pods, in each
#: combination.
SAMPLES = 16
_MIXED = 2  # the first fate in which some of the old pods are gone and some are not; then orders are drawn, too
_FATES = 4
_SCALE = float(1 << 64)


def drawn(pod: Pod, node: str, number: int) -> float:
    """Return a number from 0 to 1 that depends on these three alone."""
    return _drawn(f"{pod.uid or '/'.join(pod.key)}|{node}|{number}")


@lru_cache(maxsize=1 << 15)  # whether an old pod is gone is asked for each world, over and over
def _drawn(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / _SCALE


@dataclass(frozen=True, slots=True)
class Draw:
    """What is fixed in one world."""

    number: int  # the world's
    ended: bool | None = None  # whether all old pods are gone, or none; None where that is drawn

    @property
    def is_even(self) -> bool:
        """Whether each of equal nodes is as likely; otherwise the first one is taken."""
        return not self.number & 2

    @property
    def fate(self) -> int:
        """What becomes of old pods: 0 they still end, 1 they are gone, else it is drawn for each."""
        return self.number // _FATES

    def is_gone(self, pod: Pod) -> bool:
        """Return whether a pod that went is gone when others come."""
        if self.ended is not None:
            return self.ended
        if self.fate < _MIXED:
            return self.fate == 1
        return (drawn(pod, "", _MIXED) < 0.5) is (self.fate == _MIXED)  # noqa: PLR2004  a coin, turned in the last fate

    def at_turn(self, *, late: bool) -> "Draw":
        """Return what is fixed as the early or the late replacements come, in a world that is played once more."""
        return Draw(self.number, ended=late) if self.fate > _MIXED else self

    def window(self, pod: Pod, *, sampled: bool = True) -> SamplingWindow:
        """Return where the scheduler begins to look for the replacement of a pod."""
        if not sampled:
            return SamplingWindow(self.number % 2, (self.fate * 2 + self.number % 2) / (SAMPLES // 2))
        return SamplingWindow(self.number % 2, (drawn(pod, "", -1) + self.number // 2 / (SAMPLES // 2)) % 1.0)

    def moment(self, pod: Pod, moments: Sequence[Moment]) -> Moment:
        """Return when the replacement is made."""
        return moments[-1 if self.is_gone(pod) else 0]


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a replacement lands in one world."""

    number: int  # the world's
    answer: Answer  # the nodes that tie there, or why there is none
    node: str = ""  # the one that is drawn; empty if there is none

    @property
    def brief(self) -> "Seen":
        """The same without scores: those of all nodes in each world, for each pod that goes, would fill the memory."""
        return Seen(self.number, self.answer.without_scores(), self.node)

    @property
    def shares(self) -> Mapping[str, float]:
        """How likely each of the nodes is in this world."""
        if Draw(self.number).is_even:
            return {name: 1 / len(self.answer.nodes) for name in self.answer.nodes}
        return {self.node: 1.0} if self.node else {}


class Worlds:
    """The worlds of one cluster, which they follow: get them with `cluster.index(Worlds)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._simulation = cluster.index(Simulation)
        self._draws = [Draw(number) for number in range(SAMPLES)]
        self._simulated: SharedClusters | None = None  # None until somebody asks after a change
        self._taints = self._simulation.taints
        self._seen: dict[Pod, tuple[Seen, ...]] = {}
        self._again: dict[Pod, dict[int, Seen]] = {}
        self._gone: dict[Pod, Pod] = {}  # each as it ends
        self._landed: dict[Pod, tuple[str, ...]] = {}
        # By world and node, whose replacements are there but expected elsewhere, and the other way round; in order.
        self._others: defaultdict[tuple[int, str], tuple[dict[Pod, None], dict[Pod, None]]] = defaultdict(
            lambda: ({}, {})
        )
        cluster.tell(self)

    def placements(self, pod: Pod) -> Iterator[Seen]:
        """Yield world by world where the replacement lands if the pod goes now; remembered once all have been seen."""
        found: list[Seen] = []
        known: dict[object, Answer] = {}
        for draw in self._draws:
            seen = self._look(pod, draw, known)
            found.append(seen)
            yield seen
        self._seen[pod] = tuple([each.brief for each in found])
        self._again.pop(pod, None)

    def _look(self, pod: Pod, draw: Draw, known: dict[object, Answer]) -> Seen:
        simulated = self._of_world(draw)
        moment = draw.moment(pod, self._simulation.replacement(pod).moments)
        answer = known.get((id(simulated), moment))
        if answer is None or answer.sampled:
            answer = known[id(simulated), moment] = self._simulation.at(pod, simulated, moment, draw.window(pod))
        return Seen(draw.number, answer, self._taken(pod, simulated, answer, draw))

    def _taken(self, pod: Pod, simulated: Simulator, answer: Answer, draw: Draw) -> str:
        if not answer.nodes:
            return ""
        if draw.is_even:
            return min(answer.nodes, key=lambda name: (drawn(pod, name, draw.number), name))
        return simulated.first(answer.nodes, draw.window(pod, sampled=answer.sampled))

    def shares(self, pod: Pod) -> dict[str, float]:
        """Return how likely the replacement lands on each node, the most likely first; empty if it was not asked."""
        again, sums = self._again.get(pod, {}), defaultdict[str, float](float)
        for seen in self._seen.get(pod, ()):
            plays = [seen, again[seen.number]] if seen.number in again else [seen]  # in turn, and in the drawn order
            for name, share in (each for play in plays for each in play.shares.items()):
                sums[name] += share / len(plays) / SAMPLES
        return {name: sums[name] for name in sorted(sums, key=lambda name: (-round(sums[name], 9), name))}

    def others_on(self, number: int, node: str) -> tuple[Collection[Pod], Collection[Pod]]:
        """Return whose replacements are on a node in one world but not in the plan, and the other way round."""
        return self._others.get((number, node), ((), ()))

    def landed_on(self, number: int, node: str, pods: Iterable[Pod]) -> list[Pod]:
        """Return which of these pods' replacements are on a node in one world."""
        return [pod for pod in pods if self._landed[pod][number] == node]

    def played(self, expected: Mapping[Pod, str]) -> None:
        """Play the worlds with drawn orders once more, when it is known which pods go (see `in_drawn_orders`)."""
        for _ in self.in_drawn_orders(expected):
            pass

    def in_drawn_orders(self, expected: Mapping[Pod, str]) -> Iterator[list[tuple[Pod, Seen]]]:
        """Yield for each drawn order where replacements land, in that order; what is seen counts in `shares`.

        Expected are the nodes that the plan counts on, by pods that have gone, in the order of their evictions.
        """
        pods = [pod for pod in expected if pod in self._seen]
        if len(expected) < 2 or not pods:  # noqa: PLR2004  an order takes two
            return
        for draw in self._draws:
            if draw.fate >= _MIXED:
                arrived = list(self._arriving(draw, pods, expected))
                for pod, seen in arrived:
                    self._again.setdefault(pod, {})[draw.number] = seen.brief
                yield arrived

    def _arriving(self, draw: Draw, pods: Sequence[Pod], expected: Mapping[Pod, str]) -> Iterator[tuple[Pod, Seen]]:
        simulated, now = self._of_world(draw), draw
        with ExitStack() as undo:
            for pod in [each for each in expected if each not in self._seen]:
                undo.enter_context(simulated.exchanged(expected[pod], None, self._simulation.coming(pod)))
            for pod, late in self._order(draw, pods):
                before, now = now, draw.at_turn(late=late)
                for old in [each for each in expected if each in self._gone] if now != before else ():
                    was, becomes = (None if each.is_gone(old) else self._gone[old] for each in (before, now))
                    undo.enter_context(simulated.exchanged(old.node, was, becomes))
                seen = self._look(pod, now, {})
                yield pod, seen
                if seen.node:
                    undo.enter_context(simulated.exchanged(seen.node, None, self._simulation.coming(pod)))

    def _order(self, draw: Draw, pods: Sequence[Pod]) -> list[tuple[Pod, bool]]:
        """Return pods in the order in which their replacements come, each with whether it is among the late ones.

        Those that wait come after the others.  Replacements of one owner are alike, so they keep their order.
        """
        late = {pod: draw.moment(pod, self._simulation.replacement(pod).moments) is Moment.AFTERWARDS for pod in pods}
        coming = sorted(pods, key=lambda pod: (late[pod], drawn(pod, "", draw.number)))
        waiting: dict[object, list[Pod]] = {}
        for pod in reversed(pods):
            waiting.setdefault(self._identity(pod), []).append(pod)
        return [(waiting[self._identity(pod)].pop(), late[pod]) for pod in coming]

    def _identity(self, pod: Pod) -> object:
        """Return what tells a replacement from others: its owner, or the pod where the replacement keeps its name."""
        keeps = self._simulation.coming(pod).name == pod.name
        return pod if keeps or pod.controller is None else pod.controller.uid

    def landed(self, pod: Pod) -> None:
        """Forget what was drawn for a pod whose replacement has landed: once placed, it is there in all worlds."""
        self._seen.pop(pod, None)
        self._again.pop(pod, None)

    def left(self, pod: Pod, sign: int) -> None:
        """Count a pod as one that went (1), or as running again (-1)."""
        if not pod.active or not pod.node:
            return
        if sign > 0:
            self._gone[pod] = self._simulation.ending(pod)
        if self._simulated:
            self._simulated.note(("left", pod), sign, self._leaving(pod))
        if sign < 0:
            del self._gone[pod]

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Let the replacement of a pod be where it was drawn, in each world (1), or nowhere again (-1)."""
        if sign > 0:
            seen = self._seen.get(pod, ())
            self._landed[pod] = tuple(each.node or node.name for each in seen) or (node.name,) * SAMPLES
        for number, name in enumerate(self._landed[pod]):
            if name != node.name:
                for others in (self._others[number, name][0], self._others[number, node.name][1]):
                    if sign > 0:
                        others[pod] = None
                    else:
                        del others[pod]
        if self._simulated:
            self._simulated.note(("came", pod), sign, self._arrivals(pod))
        if sign < 0:
            del self._landed[pod]

    def _of_world(self, draw: Draw) -> Simulator:
        """Return the cluster of a world; as long as no pod has gone, the one that was read."""
        if self._simulated is None:
            if not self._gone and not self._landed:
                return self._simulation.soon_and_later[0]
            self._simulated = SharedClusters(self._simulation.as_read, SAMPLES)
            for pod in self._gone:
                self._simulated.note(("left", pod), 1, self._leaving(pod))
            for pod in self._landed:
                self._simulated.note(("came", pod), 1, self._arrivals(pod))
        if self._taints is not self._simulation.taints:
            self._taints = self._simulation.taints
            self._simulated.suppose(self._taints)
        return self._simulated[draw.number]

    def _leaving(self, pod: Pod) -> Sequence[Exchange]:
        ending, gone = (pod.node, pod, self._gone[pod]), (pod.node, pod, None)
        return [gone if draw.is_gone(pod) else ending for draw in self._draws]

    def _arrivals(self, pod: Pod) -> Sequence[Exchange]:
        moments, coming = self._simulation.replacement(pod).moments, self._simulation.coming(pod)
        arrivals = {node: (node, None, coming) for node in self._landed[pod]}
        there = [draw.moment(pod, moments) is Moment.AT_ONCE or draw.is_gone(pod) for draw in self._draws]
        return [arrivals[node] if is_there else None for node, is_there in zip(self._landed[pod], there, strict=True)]
