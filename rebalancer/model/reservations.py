"""Where pods that leave would likely go: each destination is charged with their usage and their requests.

A destination takes a pod if the pod fits by the rules of `rebalancer.model.fit`, with what was reserved before, and
the usage stays within the destination's ceilings.  Of those that do, the one is charged that the scheduler would likely
choose: the most free by requests (its LeastAllocated), or the least free where pods are packed; ties by name.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rebalancer.model.cluster import Cluster
from rebalancer.model.fit import Fit, tally
from rebalancer.model.level import Level, number_text
from rebalancer.model.objects import Node, Pod
from rebalancer.model.resources import CPU, MEMORY, PODS, Resources, add, subtract
from rebalancer.model.usage import Percentages
from rebalancer.model.verdict import Refused

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


class _Destination:
    """One node with what it was charged; `headroom` is what it can still take, of every resource that counts."""

    def __init__(self, load: Level, ceilings: Percentages) -> None:
        self.load = load
        self.node = load.node
        self.headroom = load.headroom(ceilings)
        self.requests: dict[str, int] = {}
        self.arrivals: dict[tuple[str, str], Pod] = {}

    def reserve(self, pod: Pod, usage: Resources) -> None:
        self.load.charge(usage)
        self._shrink(usage, 1)
        add(self.requests, {**pod.spec.requests, PODS: 1})
        self.arrivals[pod.key] = pod

    def cancel(self, pod: Pod, usage: Resources) -> None:
        self.load.release(usage)
        self._shrink(usage, -1)
        subtract(self.requests, {**pod.spec.requests, PODS: 1})
        del self.arrivals[pod.key]

    def has_room(self, usage: Resources) -> bool:
        for name, left in self.headroom.items():  # noqa: SIM110  all() takes twice as long, and nothing is asked more
            if usage.get(name, 0) > left:
                return False
        return True

    def _shrink(self, usage: Resources, count: int) -> None:
        for name in self.headroom:
            self.headroom[name] -= count * usage.get(name, 0)


class Reservations:
    """The places on all destinations of one strategy.

    Args:
        loads: the destinations, with what they use at their peaks of all resources that count.
        ceilings: up to which percentage they may be used; a resource without one up to the whole.
        packed: whether pods go to the fullest that takes them, not the emptiest.
    """

    def __init__(
        self, cluster: Cluster, loads: Iterable[Level], ceilings: Percentages, *, packed: bool = False
    ) -> None:
        self._cluster = cluster
        self._ceilings = ceilings
        self._sign = 1 if packed else -1
        self._by_name = {load.node.name: _Destination(load, ceilings) for load in loads}
        self._fit = Fit(self._residents, self._free)
        self._order = sorted(map(self._ranked, self._by_name.values()))

    def reserve(self, pod: Pod, usage: Resources, names: Iterable[str]) -> Reservation | Refused:
        """Keep a place for the pod, or tell why there is none.

        Args:
            pod: the pod that would go.
            usage: what it takes along.
            names: the resources to tell of in the reservation's text.
        """
        for index, (_, name, destination) in enumerate(self._order):
            # The usage comes first since it decides most often, and fastest.
            if destination.has_room(usage) and not self._fit.why_not(pod, destination.node):
                del self._order[index]
                destination.reserve(pod, usage)
                insort(self._order, self._ranked(destination))
                return Reservation(pod, name, usage, _arrival(destination.load, usage, names))
        causes = (self._why_not(destination, pod, usage) for destination in self._by_name.values())
        return Refused("NoDestination", f"no destination: of {len(self._by_name)} nodes {tally(causes)}")

    def keep_below(self, floors: Percentages) -> bool:
        """Take no more pods to destinations that have reached all these percentages; tell whether some are left."""
        self._order = [ranked for ranked in self._order if self._below(ranked[-1], floors)]
        return bool(self._order)

    def cancel(self, reservation: Reservation) -> None:
        """Give a place back."""
        destination = self._by_name[reservation.node]
        self._order.remove(self._ranked(destination))
        destination.cancel(reservation.pod, reservation.usage)
        insort(self._order, self._ranked(destination))

    def _below(self, destination: _Destination, floors: Percentages) -> bool:
        return any((destination.load.percent(name) or 0.0) < floor for name, floor in floors.items())

    def _why_not(self, destination: _Destination, pod: Pod, usage: Resources) -> str:
        return self._fit.why_not(pod, destination.node) or destination.load.passed(usage, self._ceilings)

    def _ranked(self, destination: _Destination) -> tuple[float, str, _Destination]:
        """Return the destination with its place in the order: by the mean share of cpu and memory nobody requests."""
        node = destination.node
        free = self._free(node)
        shares = [free(name) / node.allocatable[name] for name in (CPU, MEMORY) if node.allocatable.get(name)]
        return (round(self._sign * sum(shares) / max(len(shares), 1), _DECIMALS), node.name, destination)

    def _residents(self, node: Node) -> list[Pod]:
        return [*self._cluster.active_pods_on(node), *self._by_name[node.name].arrivals.values()]

    def _free(self, node: Node) -> Callable[[str], int]:
        free, reserved = self._cluster.free(node), self._by_name[node.name].requests
        return lambda name: free(name) - reserved.get(name, 0)


def _arrival(load: Level, usage: Resources, names: Iterable[str]) -> str:
    added = load.points(usage)
    rises = [_rise(name, load.percent(name) or 0.0, added[name]) for name in names if added[name]]
    return f"{load.node.name} ({', '.join(rises)})" if rises else load.node.name


def _rise(name: str, after: float, added: float) -> str:
    return f"{name} {number_text(after - added)} % -> {number_text(after)} %"
