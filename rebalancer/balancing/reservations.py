"""Where pods that leave would likely go: each destination is charged with their usage and their requests.

A destination takes a pod if the pod fits by the rules of `rebalancer.cluster.fit`, with what was reserved before, and
the usage stays within the destination's ceilings.  Without one no pod goes.

With a forecast the node is charged where the scheduler would likely put the pod, which need not be a destination.  A
pod that would likely come back to its own node, or land on one that it lifts above its ceilings, has no destination:
it would have to be moved again.  But a node with floors, below which it uses too little, may pass a ceiling where the
pod fills it more in another resource: a node full of one and low in another, which the scheduler prefers to all
others, would let no pod move for ever.  Where the forecast is not exact, half of the likely nodes must do.  Without a
forecast the destination is charged that is the most free by requests, or the least free where pods are packed; ties by
name.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rebalancer.balancing.level import Level, number_text
from rebalancer.balancing.usage import Percentages
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.fit import Fit, tally
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.resources import CPU, MEMORY, PODS, Resources, add, subtract
from rebalancer.eviction.verdict import Refused
from rebalancer.scheduling.forecast import Forecast

_DECIMALS = 9  # shares that differ by less are equal, but for the noise of floating point


@dataclass(frozen=True, slots=True)
class Reservation:
    """A place kept for a pod.

    Attributes:
        node: name of the node.
        usage: what the node is charged.
        text: node, and how full it becomes, like `node-11 (cpu 20 % -> 27 %)`.
    """

    pod: Pod
    node: str
    usage: Resources
    text: str


class Landing:
    """One node with what it was charged; `headroom` is what it can still take, of every resource that counts."""

    def __init__(self, load: Level, ceilings: Percentages) -> None:
        self.load = load
        self.node = load.node
        self.headroom = load.headroom(ceilings)
        self.requests: dict[str, int] = {}
        self.arrivals: dict[tuple[str, str], Pod] = {}

    def reserve(self, pod: Pod, usage: Resources) -> None:
        """Charge it with a pod."""
        self.load.charge(usage)
        self._shrink(usage, 1)
        add(self.requests, {**pod.spec.requests, PODS: 1})
        self.arrivals[pod.key] = pod

    def cancel(self, pod: Pod, usage: Resources) -> None:
        """Take the charge back."""
        self.load.release(usage)
        self._shrink(usage, -1)
        subtract(self.requests, {**pod.spec.requests, PODS: 1})
        del self.arrivals[pod.key]

    def has_room(self, usage: Resources) -> bool:
        """Tell whether so much more passes no ceiling."""
        for name, left in self.headroom.items():  # noqa: SIM110  all() takes twice as long, and nothing is asked more
            if usage.get(name, 0) > left:
                return False
        return True

    def _shrink(self, usage: Resources, count: int) -> None:
        for name in self.headroom:
            self.headroom[name] -= count * usage.get(name, 0)


class Reservations:
    """The places that one strategy keeps.

    Args:
        loads: the destinations, with what they use at their peaks of all resources that count.
        ceilings: up to which percentage they may be used; a resource without one up to the whole.
        packed: whether pods go to the fullest that takes them, not the emptiest.
        others: the nodes of known usage that are no destinations.
        forecast: tells where pods land; None if nobody knows.
        floors: by resource, the percentage that nodes are short of when they use less.
    """

    def __init__(
        self,
        cluster: Cluster,
        loads: Iterable[Level],
        ceilings: Percentages,
        *,
        packed: bool = False,
        others: Iterable[Level] = (),
        forecast: Forecast | None = None,
        floors: Percentages | None = None,
    ) -> None:
        self._cluster = cluster
        self._ceilings = ceilings
        self._floors = floors or {}
        self._sign = 1 if packed else -1
        self._destinations = {load.node.name: Landing(load, ceilings) for load in loads}
        self._landings = {load.node.name: Landing(load, ceilings) for load in others} | self._destinations
        self.forecast = forecast
        self._fit = Fit(self._residents, self._free)
        self._ranks = {name: self._ranked(landing) for name, landing in self._destinations.items()}
        self._order = sorted(self._ranks.values())

    @property
    def landings(self) -> Collection[Landing]:
        """All nodes of known usage, with what they were charged."""
        return self._landings.values()

    def reserve(self, pod: Pod, usage: Resources, names: Iterable[str]) -> Reservation | Refused:
        """Keep a place for the pod, or tell why there is none.

        Args:
            pod: the pod that would go.
            usage: what it takes along.
            names: the resources to tell of in the reservation's text.
        """
        prospects = self.prospects(pod, usage)
        return prospects if isinstance(prospects, Refused) else self.keep(pod, usage, names, prospects[0])

    def prospects(self, pod: Pod, usage: Resources) -> Sequence[Landing] | Refused:
        """Return where the pod would land, on one of these as likely as on another, or why it had better stay."""
        first = self._first(pod, usage)
        if first is None:
            causes = (self._why_not(each, pod, usage) for each in self._destinations.values())
            return Refused("NoDestination", f"no destination: of {len(self._destinations)} nodes {tally(causes)}")
        if self.forecast is None:
            return (first,)
        likely = self.forecast.likely(pod, self._fits)
        harms = {node.name: self._harm(pod, node, usage) for node in likely}
        harmful = [name for name, harm in harms.items() if harm]
        if harmful and (self.forecast.exact or 2 * len(harmful) > len(likely)):
            reason = f"no destination: the scheduler would likely choose {harmful[0]}, {harms[harmful[0]]}"
            return Refused("NoDestination", reason)
        return [self._landings[node.name] for node in likely if not harms[node.name]] or (first,)

    def keep(self, pod: Pod, usage: Resources, names: Iterable[str], landing: Landing) -> Reservation:
        """Keep a place on one of a pod's prospects; arguments as for `reserve`."""
        self._unrank(landing)
        landing.reserve(pod, usage)
        self._rank(landing)
        if self.forecast:
            self.forecast.move(pod, pod.node, landing.node.name)
        return Reservation(pod, landing.node.name, usage, _arrival(landing.load, usage, names))

    def cancel(self, reservation: Reservation) -> None:
        """Give a place back."""
        landing = self._landings[reservation.node]
        self._unrank(landing)
        landing.cancel(reservation.pod, reservation.usage)
        self._rank(landing)
        if self.forecast:
            self.forecast.move(reservation.pod, reservation.node, reservation.pod.node)

    def limit(self, ceilings: Percentages) -> None:
        """Set other ceilings from now on."""
        self._ceilings = ceilings
        for landing in self._landings.values():
            landing.headroom = landing.load.headroom(ceilings)

    def _first(self, pod: Pod, usage: Resources) -> Landing | None:
        for _, name, landing in self._order:
            # The usage comes first since it decides most often, and fastest.
            if landing.has_room(usage) and name != pod.node and self._fits(pod, landing.node):
                return landing
        return None

    def _fits(self, pod: Pod, node: Node) -> bool:
        return not self._fit.why_not(pod, node)

    def _harm(self, pod: Pod, node: Node, usage: Resources) -> str:
        if node.name == pod.node:
            return "where it is"
        landing = self._landings.get(node.name)
        if landing is None:
            return "whose usage is unknown"
        passed = landing.load.passed(usage, self._ceilings)
        return "" if passed and self._fills_more_than_it_passes(landing.load, usage) else passed

    def _fills_more_than_it_passes(self, load: Level, usage: Resources) -> bool:
        if not self._floors or load.passed(usage, {}):
            return False
        now, then = (load.outside(self._floors, self._ceilings, added) for added in ({}, load.points(usage)))
        return then < now

    def _unrank(self, landing: Landing) -> None:
        if landing.node.name in self._destinations:
            self._order.remove(self._ranks[landing.node.name])

    def _rank(self, landing: Landing) -> None:
        if landing.node.name in self._destinations:
            rank = self._ranks[landing.node.name] = self._ranked(landing)
            insort(self._order, rank)

    def _why_not(self, destination: Landing, pod: Pod, usage: Resources) -> str:
        return self._fit.why_not(pod, destination.node) or destination.load.passed(usage, self._ceilings)

    def _ranked(self, destination: Landing) -> tuple[float, str, Landing]:
        """Return the destination with its place in the order: by the mean share of cpu and memory nobody requests."""
        node = destination.node
        free = self._free(node)
        shares = [free(name) / node.allocatable[name] for name in (CPU, MEMORY) if node.allocatable.get(name)]
        return (round(self._sign * sum(shares) / max(len(shares), 1), _DECIMALS), node.name, destination)

    def _residents(self, node: Node) -> list[Pod]:
        landing = self._landings.get(node.name)
        return [*self._cluster.active_pods_on(node), *(landing.arrivals.values() if landing else ())]

    def _free(self, node: Node) -> Callable[[str], int]:
        landing, free = self._landings.get(node.name), self._cluster.free(node)
        if landing is None:
            return free
        reserved = landing.requests
        return lambda name: free(name) - reserved.get(name, 0)


def _arrival(load: Level, usage: Resources, names: Iterable[str]) -> str:
    added = load.points(usage)
    rises = [_rise(name, load.percent(name) or 0.0, added[name]) for name in names if added[name]]
    return f"{load.node.name} ({', '.join(rises)})" if rises else load.node.name


def _rise(name: str, after: float, added: float) -> str:
    return f"{name} {number_text(after - added)} % -> {number_text(after)} %"
