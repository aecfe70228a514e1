"""Which nodes could take a pod: the one answer for strategies, nodeFit and relief.

Constraints that do not depend on other pods are checked once for each group of equal constraints, and for nodes that
look alike together: the cost is close to specs plus nodes, not specs times nodes.  Anti-affinity and room are checked
against the present state of the cluster: without the pods that went, with those that are expected.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any

from msgspec.structs import replace

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.resources import PODS
from rebalancer.cluster.taints import all_untolerated
from rebalancer.eviction.causes import Cause
from rebalancer.scheduling import fit
from rebalancer.scheduling.equivalence import Demands, EquivalentNodes, asked_labels
from rebalancer.scheduling.fit import Obstacle, why_placement_fails, why_repelled, why_too_full
from rebalancer.scheduling.repellers import Repellers

#: Nodes that are asked before those that cannot take the pod are left out: as a rule the first ones do.
_ONE_BY_ONE = 64


@dataclass(eq=False, slots=True)
class ConstraintGroup:
    """The pods with the same constraints."""

    spec: PodSpec
    suiting: frozenset[str]  # the ready nodes that meet them, cordoned or not
    names: frozenset[str]  # of these, the ones that the cycle works on
    _causes: dict[str, Cause | None] = field(default_factory=dict)

    def why_not(self, node: Node) -> Cause | None:
        """Return why no pod of the group may be placed on a node, None if each may (see `why_placement_fails`)."""
        if node.name not in self._causes:
            self._causes[node.name] = why_placement_fails(self.spec, node)
        return self._causes[node.name]


class EligibleNodes:
    """Answers for one cluster.  There is one per cluster: get it with `cluster.index(EligibleNodes)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._alike = EquivalentNodes(cluster.ready_nodes)
        self._names = [node.name for node in cluster.ready_nodes]
        self._worked_on = frozenset(node.name for node in cluster.nodes)
        self._demands = Demands()
        self._groups: dict[int, ConstraintGroup] = {}
        self._shared: dict[object, ConstraintGroup] = {}
        self._selected: dict[object, frozenset[str]] = {}
        self._taints = {each for node in cluster.ready_nodes for each in node.taints}
        self.steps = 0  # how many changes of the cluster there were so far
        self._rooms: dict[str, _Room] = {}

    def by_constraints(self, spec: PodSpec) -> frozenset[str]:
        """Return the nodes, cordoned or full ones too, that tolerations, selector and required affinity admit."""
        return self.constraints(spec).names

    def constraints(self, spec: PodSpec) -> ConstraintGroup:
        """Return what a spec demands of nodes, whatever runs there; the same object where that has the same effect.

        For example, tolerations of taints that no node has make no difference.
        """
        number = self._demands.of(spec)
        if number not in self._groups:
            selected = self._selected_by(spec)
            taints = frozenset(all_untolerated(spec.tolerations, self._taints))
            effect = taints, selected
            if effect not in self._shared:
                suiting = frozenset(name for name in selected if taints.isdisjoint(self._nodes_by_name[name].taints))
                self._shared[effect] = ConstraintGroup(spec, suiting, suiting & self._worked_on)
            self._groups[number] = self._shared[effect]
        return self._groups[number]

    def _selected_by(self, spec: PodSpec) -> frozenset[str]:
        """Return the ready nodes that a spec's selector and required affinity match, whatever their taints."""
        asked = frozenset((spec.node_selector or {}).items()), spec.node_terms
        if asked not in self._selected:
            nodes = self._cluster.ready_nodes
            matching = (
                map(self._names.__getitem__, group)
                for group in self._alike.groups(asked_labels(spec.node_selector, spec.node_terms or ()))
                if spec.selects_node(nodes[group[0]].labels, nodes[group[0]].name)
            )
            self._selected[asked] = frozenset(chain.from_iterable(matching))
        return self._selected[asked]

    def why_not(self, pod: Pod, node: Node) -> Cause | None:
        """Return why the pod could not run on the node, None if it could (see `rebalancer.scheduling.fit`)."""
        reason = self.constraints(pod.spec).why_not(node)
        if not reason and pod.spec.anti_affinity:
            reason = why_repelled(pod, node, self._cluster.residents(node))
        if reason or node.name == pod.node:
            return reason
        return why_too_full(pod.spec, self._cluster.free(node))

    def fits(self, pod: Pod, node: Node) -> bool:
        """Return whether the pod could run on the node."""
        return self._takes(pod, node, pod.name, pod.node)

    def takes_more(self, pod: Pod, node: Node) -> bool:
        """Return whether one more pod of the same template could run on the node, beside this one if that is there."""
        return self._takes(pod, node, "", "")

    def _takes(self, pod: Pod, node: Node, name: str, own: str) -> bool:
        if self.constraints(pod.spec).why_not(node) or (
            node.name != own and why_too_full(pod.spec, self._cluster.free(node))
        ):
            return False
        return not (pod.spec.anti_affinity and self._cluster.index(Repellers).are_on(node, pod, name))

    def candidates(self, pod: Pod) -> set[str]:
        """Return the ready nodes that may take a pod, and some that do not: all others do not suit it, or lack room."""
        rooms = [(self._room(name), request) for name, request in {PODS: 1, **pod.spec.requests}.items()]
        scarcest, request = min(rooms, key=lambda each: each[0].count(each[1]))
        found = scarcest.with_at_least(request) & self.constraints(pod.spec).suiting
        return found - self._cluster.index(Repellers).nodes(pod) if found and pod.spec.anti_affinity else found

    @cached_property
    def _nodes_by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self._cluster.ready_nodes}

    def _room(self, name: str) -> "_Room":
        if name not in self._rooms:
            self._rooms[name] = _Room({node.name: self._cluster.free(node)(name) for node in self._cluster.ready_nodes})
        return self._rooms[name]

    def beside_namesakes(self, pod: Pod) -> list[Node]:
        """Return the nodes but its own where a pod of its name may keep others of its template away, but not this one.

        They come in the order of their names.
        """
        names = self._cluster.index(Repellers).beside_namesakes(pod) if pod.spec.anti_affinity else ()
        return [node for name in sorted(names) if name != pod.node and (node := self._nodes_by_name.get(name))]

    def among(self, nodes: Sequence[Node]) -> "OtherNodes":
        """Return an object that finds another node for pods among these nodes."""
        return OtherNodes(self, nodes)

    def left(self, pod: Pod, sign: int) -> None:  # noqa: ARG002  the interface
        """Note that a node has more room, or less again."""
        self._note(pod.node)

    def came(self, pod: Pod, node: Node, sign: int) -> None:  # noqa: ARG002  the interface
        """Note that a node has less room, or more again."""
        self._note(node.name)

    def _note(self, name: str) -> None:
        self.steps += 1
        node = self._nodes_by_name.get(name) if self._rooms else None
        if node is not None:
            free = self._cluster.free(node)
            for resource, room in self._rooms.items():
                room.update(name, free(resource))


class _Room:
    """How much of one resource is free on each node, sorted."""

    def __init__(self, free: dict[str, int]) -> None:
        self._free = free
        self._sorted = sorted((amount, name) for name, amount in free.items())

    def count(self, request: int) -> int:
        """Return how many nodes have so much."""
        return len(self._sorted) - bisect_left(self._sorted, (request, ""))

    def with_at_least(self, request: int) -> set[str]:
        """Return the nodes that have so much."""
        return {name for _, name in self._sorted[bisect_left(self._sorted, (request, "")) :]}

    def update(self, name: str, amount: int) -> None:
        """Note how much a node has now."""
        del self._sorted[bisect_left(self._sorted, (self._free[name], name))]
        insort(self._sorted, (amount, name))
        self._free[name] = amount


@dataclass(slots=True)
class _Search:
    """What was found for the pods of one spec, which it keeps alive, and namespace."""

    spec: PodSpec
    checked: int = -1  # after how many changes of the cluster the nodes found were last checked
    searched: int = -1  # after how many changes all nodes were last looked through
    found: list[Node] = field(default_factory=list)


class OtherNodes:
    """Finds another node for a pod; asking for many pods costs little.

    Pods of one template have the same answer, so for each spec the first two nodes that take it are remembered: one of
    them may be the pod's own.  After a change of the cluster these two are checked again; if they do not answer, two
    others are looked for.
    """

    def __init__(self, eligible: EligibleNodes, nodes: Sequence[Node]) -> None:
        self._eligible = eligible
        self._nodes = nodes
        self._names = frozenset(node.name for node in nodes)
        self._searches: dict[tuple[int, str], _Search] = {}

    def any_for(self, pod: Pod) -> bool:
        """Return whether a node other than the pod's own takes it."""
        return bool(self.first_for(pod))

    def first_for(self, pod: Pod) -> str:
        """Return the name of a node other than the pod's own that takes it, empty if none does."""
        key = (id(pod.spec), pod.namespace if pod.spec.anti_affinity else "")  # anti-affinity goes by the namespace
        search, steps = self._searches.setdefault(key, _Search(pod.spec)), self._eligible.steps
        if search.checked != steps:  # some that were found may be full now
            search.found = [node for node in search.found if self._eligible.takes_more(pod, node)]
            search.checked = steps
        if search.searched != steps and all(node.name == pod.node for node in search.found):
            search.found, search.searched = list(islice(self._takers(pod), 2)), steps
        found = [node for node in search.found if node.name != pod.node][:1]
        beside = (node for node in self._eligible.beside_namesakes(pod) if node.name in self._names)
        found += islice((node for node in beside if self._eligible.fits(pod, node)), 1)
        return min((node.name for node in found), default="")

    def _takers(self, pod: Pod) -> Iterator[Node]:
        yield from (node for node in self._nodes[:_ONE_BY_ONE] if self._eligible.takes_more(pod, node))
        rest = self._nodes[_ONE_BY_ONE:]
        names = self._eligible.candidates(pod) if rest else ()  # where all nodes are full, that is none
        yield from (node for node in rest if node.name in names and self._eligible.takes_more(pod, node))


class Obstacles:
    """Says why pods fit nowhere: each node is looked at once for all pods that ask for the same."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node]) -> None:
        self._eligible = cluster.index(EligibleNodes)
        self._nodes = {node.name: node for node in nodes}
        self._cluster = cluster
        # What the pods that were asked about last have in common, and what keeps them from nodes but for other pods.
        self._usual: tuple[object, dict[str, Obstacle], Counter[Obstacle]] = (None, {}, Counter())
        # The same with other pods: where that differs, and the most frequent.
        self._last: tuple[object, dict[str, Obstacle], list[tuple[Obstacle, int]]] = (None, {}, [])

    def of(self, pod: Pod) -> dict[str, Any]:
        """Return how many other nodes there are, and what keeps the pod from them (see `fit.obstacles`)."""
        count = {"nodes": len(self._nodes) - (pod.node in self._nodes)}
        self._look(pod)
        (_, usual, _), (_, changed, most) = self._usual, self._last
        if beside := [node for node in self._eligible.beside_namesakes(pod) if node.name in self._nodes]:
            found = {**usual, **changed} | _obstacles(beside, lambda each: self._eligible.why_not(pod, each))
            found.pop(pod.node, None)
            return {**count, **fit.named(fit.most_frequent(Counter(found.values()).items()))}
        own = changed.get(pod.node) or usual.get(pod.node)
        left = ((each, number - (each == own)) for each, number in most)
        return {**count, **fit.named(fit.most_frequent(each for each in left if each[1]))}

    def _look(self, pod: Pod) -> None:
        demands, terms = self._eligible.constraints(pod.spec), Repellers.terms(pod)
        alike = (self._eligible.steps, id(demands), tuple(pod.spec.requests.items()))
        if self._usual[0] != alike:
            free = self._cluster.free
            usual = _obstacles(
                self._nodes.values(), lambda each: demands.why_not(each) or why_too_full(pod.spec, free(each))
            )
            self._usual = (alike, usual, Counter(usual.values()))
        if self._last[0] != (alike, terms):
            _, usual, counts = self._usual
            names = self._cluster.index(Repellers).nodes(pod) if terms else ()
            anyone = replace(pod, name="", node="")  # no pod has its name, and no node is its own
            repelling = (self._nodes[name] for name in names if name in self._nodes)
            changed = _obstacles(repelling, lambda each: self._eligible.why_not(anyone, each))
            if changed:
                counts = counts + Counter(changed.values()) - Counter(usual[name] for name in changed if name in usual)
            self._last = ((alike, terms), changed, fit.most_frequent(counts.items(), more=1))


def _obstacles(nodes: Iterable[Node], why_not: Callable[[Node], Cause | None]) -> dict[str, Obstacle]:
    return {node.name: fit.obstacle(why) for node in nodes if (why := why_not(node))}
