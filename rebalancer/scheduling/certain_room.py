"""Whether the replacement of a pod finds a node for certain: in whatever order others come, wherever they land.

When several pods are evicted, nobody knows which replacement the scheduler sees first, nor which of equal nodes it
takes.  Room that one finds may be gone when it is its turn.  So a pod may go only if there is room at the worst:

1. Its replacement has a node while no other has come and all pods that were evicted still have their room; as they go,
   there is only more.  If it has to be near certain pods, and its old pod may be one of them, the node has to be one
   that it may go to also when the old pod is gone.
2. Whatever the others take first, one of these nodes is left.  The others are the replacements of all pods that went
   in this cycle, and pods that the cluster makes or places anyway.
3. The same still holds for each of the pods that were allowed to go before it.

Where a rule between pods reaches further than one node (see `Ties`), that is not known.

Step 2 in full: each other pod lands on one node, on any, and before the pod.  What they can do to it is counted:

1. On each node that has room for the pod, by how many others it takes to fill it: the largest ones first.
2. Others that may keep it from a node altogether take the nodes where most would be needed.
3. If the rest are fewer than it takes to fill all remaining nodes, one of these has room at the end.

Example: three nodes have room for the pod, and beside it for 0, 1 and 2 cores.  Five others of 1 core each want in:
they fill the first node with 1 pod, the second with 2 and the third with 3.  That makes 6, and there are 5: the pod
finds room.  If one of the five had a port that the pod wants, it would take the third node; 4 are left for the first
two, which takes 3: nobody knows whether the pod finds room.

"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from itertools import accumulate, chain, repeat, starmap

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodAffinityTerm
from rebalancer.cluster.resources import PODS
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulation import Simulation
from rebalancer.scheduling.simulator.plugins.resources import conflict, ports
from rebalancer.scheduling.simulator.replacement import Moment
from rebalancer.scheduling.simulator.state import HOSTNAME, claim_names
from rebalancer.scheduling.simulator.tally import Matcher, condition_of


class Tie(IntEnum):
    """What a replacement may do to a pod, from the mildest to the worst."""

    ROOM = 0  # takes what it requests of one node
    NODE = 1  # may keep the pod from one node altogether: ports, disks, anti-affinity of one host
    ANYWHERE = 2  # may keep the pod from any number of nodes, by another rule between pods or a claim that both use


@dataclass(frozen=True, eq=False, slots=True)
class ReplacementKind:
    """Replacements that nothing here tells apart: of one namespace, with equal requests, rules, labels and claims."""

    pod: Pod  # one of them, as the scheduler gets it
    old_labels: Labels  # of the pod in whose place it comes
    known: bool  # whether `pod` is what comes; if not, the old pod stands in for it
    spread_with: tuple[Matcher, ...] = ()  # which pods count by its hard spreading
    takes_room_only: bool = False  # whether it is known, without rules, ports, claims and disks


class Ties:
    """What replacements may do to each other in one cluster; worked out once for each two kinds.

    With `hosts_differ` no two nodes have the same host name.
    """

    def __init__(self, namespaces: Mapping[str, Labels] | None, *, hosts_differ: bool) -> None:
        self._namespaces = namespaces or {}
        self._hosts_differ = hosts_differ
        self._known = cache(self._of)

    def of(self, first: ReplacementKind, then: ReplacementKind) -> Tie:
        """Return what a replacement of the first kind may do to one of the other kind if it comes before it."""
        return Tie.ROOM if first.takes_room_only and then.takes_room_only else self._known(first, then)

    def _of(self, first: ReplacementKind, then: ReplacementKind) -> Tie:
        if self._reaches_far(first, then):
            return Tie.ANYWHERE
        return Tie.NODE if not first.known or self._fills_a_node(first.pod, then.pod) else Tie.ROOM

    def _reaches_far(self, first: ReplacementKind, then: ReplacementKind) -> bool:
        one, other = first.pod, then.pod
        labels = (one.labels, first.old_labels)
        if {*claim_names(one)}.intersection(claim_names(other)) and one.namespace == other.namespace:
            return True
        if self._selected(other.spec.placement.affinity, other, one.namespace, labels):
            return True
        if any(matcher.takes(one.namespace, {}, each) for matcher in then.spread_with for each in labels):
            return True
        return self._apart(one, other, near=False)

    def _fills_a_node(self, one: Pod, other: Pod) -> bool:
        if conflict(ports(one), ports(other)):
            return True
        if all(each.spec.placement.disks or claim_names(each) for each in (one, other)):
            return True  # disks that may not be shared, and the number of volumes that a node may have
        return self._apart(one, other, near=True)

    def _apart(self, one: Pod, other: Pod, *, near: bool) -> bool:
        """Return whether required anti-affinity of either selects the other, over hosts (near) or over more."""
        return any(
            self._selected([term], pod, selected.namespace, [selected.labels])
            for pod, selected in ((one, other), (other, one))
            for term in pod.spec.anti_affinity
            if (self._hosts_differ and term.topology_key == HOSTNAME) is near
        )

    def _selected(self, terms: Iterable[PodAffinityTerm], pod: Pod, namespace: str, labels: Collection[Labels]) -> bool:
        """Return whether a term of a pod selects any of these labels, or may, since the namespace's are not known."""
        known = self._namespaces.get(namespace)
        conditions = [condition_of(term, pod.namespace) for term in terms]
        return any(
            (known is None and condition.hangs_on_labels_of(namespace, each))
            or condition.takes(namespace, known or {}, each)
            for condition in conditions
            for each in labels
        )


#: By resource, what is left of each of some nodes once the pod has what it requests.
Spare = Mapping[str, Sequence[int]]


class Competitors:
    """Pods that may all come first, summed up: so many of each kind, `size` in all."""

    def __init__(self, kinds: Mapping[ReplacementKind, int]) -> None:
        self._requests = [({PODS: 1, **kind.pod.spec.requests}, count) for kind, count in kinds.items()]
        self.size = sum(kinds.values())
        self._sums: dict[str, list[int]] = {}

    def leaves_room(self, nodes: Spare, blocking: int) -> bool:
        """Return whether one of the nodes that have room before the others come has room for the pod at the end.

        So many of the others are `blocking`: they may keep the pod from a node altogether.
        """
        # So many of the largest fit on each node; it takes one more to fill it.
        fit = (map(partial(bisect_right, self._largest(name)), amounts) for name, amounts in nodes.items())
        fewest: list[int] = sorted(map(min, zip(*fit, strict=True)))
        left = fewest[: max(len(fewest) - blocking, 0)]
        return sum(left) + len(left) > self.size - blocking

    def _largest(self, name: str) -> list[int]:
        """Return what the largest request of a resource is, the largest two together, and so on."""
        if name not in self._sums:
            largest = sorted(((each.get(name, 0), count) for each, count in self._requests), reverse=True)
            self._sums[name] = list(accumulate(chain.from_iterable(starmap(repeat, largest))))
        return self._sums[name]


#: Why a replacement may find no node, as the details of a cause; one of these, or nothing if it does find one:
#: `unschedulable`: it fits nowhere, in the scheduler's words; `unknown`: why the scheduler's answer is not known;
#: `tied`: a pod that comes as well, to which a rule between pods ties it; `crowd`: how many others may come before it,
#: with `nodes`: how many have room as long as none has; `ousted`: a pod evicted before, whose replacement would not be
#: certain to find room any more.
Doubt = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class _Wish:
    """A replacement's kind, and the names of the nodes that it could go to if it came first."""

    kind: ReplacementKind
    names: tuple[str, ...]


class CertainRoom:
    """Answers for one cluster, which it follows: get it with `cluster.index(CertainRoom)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._simulation = cluster.index(Simulation)
        names = [node.labels[HOSTNAME] for node in cluster.snapshot.nodes if HOSTNAME in node.labels]
        self._ties = Ties(cluster.snapshot.namespaces, hosts_differ=len(set(names)) == len(names))
        self._kinds: dict[object, ReplacementKind] = {}
        pods = sorted(cluster.snapshot.pods, key=lambda pod: pod.age_order)  # a cause names the first that is tied
        self._anyway = dict(self._coming_anyway(pods))
        self._gone: dict[Pod, ReplacementKind] = {}
        self._coming = Counter(self._anyway.values())
        self._wishes: dict[Pod, _Wish] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}  # equal ones are one: a name for each pod and node
        #: The wishes of pods that went, each with those pods: replicas are alike.
        self._earlier: dict[_Wish, dict[Pod, None]] = {}
        self._spares: dict[object, Spare] = {}
        self._blockers: dict[ReplacementKind, int] = {}
        for pod in pods:
            if not cluster.contains(pod):
                self.left(pod, 1)

    def doubt(self, pod: Pod) -> Doubt:
        """Return why the replacement may find no node if the pod went now, after those that went."""
        self._wishes.pop(pod, None)
        made = self._simulation.replacement(pod)
        if made.pod is None:
            return {"unknown": made.unknown}
        answers = [self._simulation.before_others(pod)]
        if made.pod.spec.placement.affinity:
            answers.append(self._simulation.before_others(pod, gone=True))
        for answer in answers:
            if answer.reason or answer.unknown:
                return {"unschedulable": answer.reason} if answer.reason else {"unknown": answer.unknown}
        names, *others = (each.feasible_nodes() for each in answers)
        for each in others:
            names = tuple(filter(set(each).__contains__, names))
        wish = _Wish(self._kind(pod, made.pod), self._names.setdefault(names, names))
        doubt = self._crowded(pod, wish) or self._ousting(pod, wish)
        if not doubt:
            self._wishes[pod] = wish
        return doubt

    def _crowded(self, pod: Pod, wish: _Wish) -> Doubt:
        others = self._others(pod)
        ties = {kind: self._ties.of(kind, wish.kind) for kind in others}
        if Tie.ANYWHERE in ties.values():
            coming = chain(self._anyway.items(), self._gone.items())
            tied = (old for old, kind in coming if old is not pod and ties[kind] is Tie.ANYWHERE)
            return {"tied": str(next(tied))}
        enough = self._leaves_room(Competitors(others), wish, self._blocking(pod, wish.kind))
        return {} if enough else {"crowd": others.total(), "nodes": len(wish.names)}

    def _ousting(self, pod: Pod, wish: _Wish) -> Doubt:
        """Return whose room a wish would make uncertain."""
        crowd, leaves_room = Competitors(self._others(pod) + Counter((wish.kind,))), dict[tuple[int, int], bool]()
        for earlier, gone in self._earlier.items():
            first, tie = next(iter(gone)), self._ties.of(wish.kind, earlier.kind)
            blocking = self._blocking(first, earlier.kind) + (tie is Tie.NODE)
            alike = (id(self._spare(earlier)), blocking)  # many want as much of the same nodes
            if alike not in leaves_room:
                leaves_room[alike] = self._leaves_room(crowd, earlier, blocking)
            if tie is Tie.ANYWHERE or not leaves_room[alike]:
                return {"ousted": str(first)}
        return {}

    def _blocking(self, pod: Pod, kind: ReplacementKind) -> int:
        """Return how many that come, beside those in the place of this pod, may keep its kind from a node."""
        if kind not in self._blockers:
            coming = self._coming.items()
            self._blockers[kind] = sum(count for each, count in coming if self._ties.of(each, kind) is Tie.NODE)
        return self._blockers[kind] - sum(self._ties.of(each, kind) is Tie.NODE for each in self._own(pod))

    def _leaves_room(self, crowd: Competitors, wish: _Wish, blocking: int) -> bool:
        # As a rule more nodes have room than others come, and nothing has to be counted.
        return len(wish.names) > crowd.size or crowd.leaves_room(self._spare(wish), blocking)

    def _spare(self, wish: _Wish) -> Spare:
        """Return what is left of the nodes of a wish; it stays as it is, since pods that went count as still there."""
        requests = wish.kind.pod.spec.requests
        alike = (frozenset(requests.items()), wish.names)
        if alike not in self._spares:
            spares = [self._simulation.first().spare(name, requests) for name in wish.names]
            self._spares[alike] = {name: [each[name] for each in spares] for name in (spares[0] if spares else ())}
        return self._spares[alike]

    def _others(self, pod: Pod) -> Counter[ReplacementKind]:
        """Return how many replacements there are of each kind, beside those that come in the place of a pod."""
        return self._coming - Counter(self._own(pod))

    def _own(self, pod: Pod) -> list[ReplacementKind]:
        return [coming[pod] for coming in (self._anyway, self._gone) if pod in coming]

    def left(self, pod: Pod, sign: int) -> None:
        """Expect the replacement of a pod that went (1), or no longer (-1)."""
        wish = self._wishes.get(pod)
        if sign > 0 and pod.active and pod.owners:
            self._gone[pod] = kind = self._of_replacement(pod)
            self._count(kind, 1)
            if wish:
                self._earlier.setdefault(wish, {})[pod] = None
        elif sign < 0 and pod in self._gone:
            self._count(self._gone.pop(pod), -1)
            if wish and self._earlier[wish].keys() <= {pod}:
                del self._earlier[wish]
            elif wish:
                del self._earlier[wish][pod]

    def _count(self, kind: ReplacementKind, change: int) -> None:
        self._coming[kind] += change
        for each in self._blockers:
            self._blockers[each] += change * (self._ties.of(kind, each) is Tie.NODE)

    def came(self, pod: Pod, node: Node, sign: int) -> None:
        """Do nothing: that a replacement is expected on one node does not make that certain."""

    def _of_replacement(self, old: Pod) -> ReplacementKind:
        return self._kind(old, self._simulation.replacement(old).pod)

    def _kind(self, old: Pod, made: Pod | None) -> ReplacementKind:
        pod = made or old
        spec, labels = pod.spec, (frozenset(pod.labels.items()), frozenset(old.labels.items()))
        rules = (spec.spread, spec.anti_affinity, spec.placement.affinity, spec.placement.disks, ports(pod))
        spread_with = self._simulation.first().spread_with(pod)
        is_plain = not any((spread_with, *rules[1:], pod.claims, pod.own_claims))
        kind = ReplacementKind(pod, old.labels, made is not None, spread_with, made is not None and is_plain)
        alike = (frozenset(spec.requests.items()), rules, pod.claims, pod.own_claims, pod.namespace, labels, bool(made))
        return self._kinds.setdefault((*alike, kind.spread_with), kind)

    def _coming_anyway(self, pods: Iterable[Pod]) -> Iterator[tuple[Pod, ReplacementKind]]:
        """Yield pods that wait for a node, and those that go without us, each with what comes."""
        for pod in pods:
            if pod.active and not pod.node and not pod.spec.placement.gated:
                yield pod, self._kind(pod, pod)
            elif pod.active and pod.node and (pod.evacuating or (pod.terminating and self._waits(pod))):
                yield pod, self._of_replacement(pod)

    def _waits(self, pod: Pod) -> bool:
        return Moment.AFTERWARDS in self._simulation.replacement(pod).moments  # not where it is not known what comes
