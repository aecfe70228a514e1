"""Emptying: take all pods off idle nodes, each node as a whole or not at all.

A node is emptied only if every pod that keeps it busy may go, all of them together, and has a destination.  Pods of
DaemonSets, mirror and static pods and those that are terminating keep no node busy.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rebalancer.balancing.figures import Figures
from rebalancer.balancing.level import Level
from rebalancer.balancing.reservations import Reservation, Reservations
from rebalancer.balancing.usage import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.evict import Evict
from rebalancer.eviction.order import cheapest_first
from rebalancer.eviction.verdict import Refused

_TOTAL_LIMIT = "TotalLimit"


@dataclass(frozen=True, slots=True)
class Emptying:
    """Takes the pods off nodes, those with the fewest pods first, then the emptiest.

    Attributes:
        reservations: the places on nodes that are not to be emptied.
        thresholds: at which the nodes count as idle, for the reasons.
        wanted: tells which pods may leave; a node with another one is left alone.
    """

    cluster: Cluster
    evict: Evict
    figures: Figures
    reservations: Reservations
    thresholds: Percentages
    wanted: Callable[[Pod], bool]

    def run(self, sources: Iterable[Level]) -> None:
        """Empty nodes; of each that is left alone one refusal tells which pod keeps it.

        Raises:
            CycleOver: see `Evict`.
        """
        busy = [(source, pods) for source in sources if (pods := self._movable(source))]
        for source, pods in sorted(busy, key=lambda each: (len(each[1]), _fullness(each[0]), each[0].node.name)):
            reason = f"{source.node.name} at {source.slack(self.thresholds)}"
            kept = self._empty(pods, reason)
            if kept:
                pod, refusal = kept
                self.evict.refuse(pod, reason, _keeps(source, refusal))
                if refusal.by == _TOTAL_LIMIT:  # nor is there enough left for the nodes that follow, with as many pods
                    return

    def _empty(self, pods: Sequence[Pod], reason: str) -> tuple[Pod, Refused] | None:
        """Evict these pods and return None, or return which of them stays and why, and leave them all alone."""
        if kept := self._stuck(pods) or self.evict.first_refusal(pods):
            return kept
        places = self._places(pods)
        if isinstance(places, tuple):
            return places
        for number, pod in enumerate(pods):
            place = places[pod.key]
            if not self.evict(pod, f"{reason}; goes to {place.text}").gone:
                # Only the server can say no after all: then the node is not emptied, and the rest had better stay.
                self._give_back([places[each.key] for each in pods[number:]])
                return None
        return None

    def _movable(self, source: Level) -> list[Pod]:
        return cheapest_first([pod for pod in self.cluster.active_pods_on(source.node) if not _stays_behind(pod)])

    def _stuck(self, pods: Sequence[Pod]) -> tuple[Pod, Refused] | None:
        for number, pod in enumerate(pods):
            if not self.wanted(pod):
                return pod, Refused("NotSelected", "the strategy's arguments leave it alone")
            if refusal := self.figures.why_stuck(pod):
                return pod, refusal
            if number and not self.figures.pods_known:
                return pod, Refused("NoUsage", "this source does not measure pods, so at most one leaves a node")
        return None

    def _places(self, pods: Sequence[Pod]) -> dict[tuple[str, str], Reservation] | tuple[Pod, Refused]:
        """Keep a place for each pod, the largest first since they are hardest to place, or for none."""
        places: dict[tuple[str, str], Reservation] = {}
        for pod in sorted(pods, key=self._largest_first):
            place = self.reservations.reserve(pod, self.figures.taken(pod), self.thresholds)
            if isinstance(place, Refused):
                self._give_back(places.values())
                return pod, place
            places[pod.key] = place
        return places

    def _give_back(self, places: Iterable[Reservation]) -> None:
        for place in places:
            self.reservations.cancel(place)

    def _largest_first(self, pod: Pod) -> tuple[object, ...]:
        node = self.cluster.node(pod.node)
        points = Level(node, self.figures.taken(pod)).percents() if node else {}
        return (-sum(points.values()), *pod.age_order)


def _fullness(source: Level) -> float:
    return sum(source.percents().values())


def _stays_behind(pod: Pod) -> bool:
    of_daemon_set = any(owner.kind == "DaemonSet" for owner in pod.owners)
    return pod.terminating or pod.mirror or pod.static or of_daemon_set


def _keeps(source: Level, refusal: Refused) -> Refused:
    return Refused(refusal.by, f"{refusal.reason}; it keeps {source.node.name}, which is emptied whole or not at all")
