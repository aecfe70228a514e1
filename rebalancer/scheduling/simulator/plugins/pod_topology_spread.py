"""PodTopologySpread: no domain may, or should, have many more of the selected pods than another.

Source: the Kubernetes documentation, Pod Topology Spread Constraints.  Terminating pods do not count.

A hard constraint counts pods on the nodes that have all the keys of the pod's hard constraints.  It refuses a domain if
its pods, with the new one if selected, would exceed those of the smallest domain by more than `maxSkew`.  With fewer
domains than `minDomains`, the smallest counts as 0.

Soft constraints score a node: (1) for each, the pods in its domain times log(number of domains + 2), plus `maxSkew`
less 1; (2) the sum, rounded; (3) reversed: 100 * (highest + lowest - sum) // highest.

Example: zones with 3, 2 and 1 pods and `maxSkew` 1.  Hard: a new pod that is selected may go to the third zone only.
Soft: log(5) = 1.61, so the sums are 5, 3 and 2, and the scores 40, 80 and 100.

What soft spread constraints add up to on each node, and the score that follows.

Most nodes have none of the counted pods, and where topology labels and taints are equal such nodes have equal sums.  So
a sum is worked out once for each kind of node, and singly only for nodes with counted pods on them.

Example: 5,000 nodes in 3 zones, 40 of them with a taint, and 50 pods of the owner on 50 nodes; constraints on zones and
hosts.  Of each zone there are two kinds, so 6 + 50 sums are worked out, not 5,000.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import log
from typing import NamedTuple

from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.scheduling.simulator.constraints import (
    PREFERRED,
    REQUIRED,
    SYSTEM_DEFAULTS,
    Admission,
    Constraint,
    Constraints,
)
from rebalancer.scheduling.simulator.nodes import WHOLE, Nodes, rounded
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import HOSTNAME, State


class _Pile(NamedTuple):
    """What one constraint adds to the sum of each node.

    Attributes:
        allowance: `maxSkew` less 1, added for each node with the label.
        weight: what each pod adds.
        values: the domain of each node, by index; None without the label.
        counts: pods by domain.
        hosts: pods by index of the node, if the topology key is the host name.
    """

    allowance: int
    weight: float
    values: Sequence[str | None]
    counts: Mapping[str | None, int]
    hosts: Mapping[int, int]


class _Scene:
    """Nodes that are scored, and what depends on them alone.

    Attributes:
        scored: the nodes, by index.
        kinds: the kind of each.
        sizes: how many there are of each kind.
        examples: by kind, one node of it.
    """

    def __init__(self, scored: Nodes, kinds: Sequence[int], examples: Sequence[int]) -> None:
        self.scored = scored
        self.kinds = scored.of(kinds)
        self.sizes = Counter(self.kinds)
        self.examples = {kind: examples[kind] for kind in self.sizes}

    def domains(self, values: Sequence[str | None]) -> set[str]:
        """Return the values of a label, empty where it is missing; nodes of one kind have the same."""
        return {values[index] or "" for index in self.examples.values()}

    def places(self, nodes: Iterable[int]) -> dict[int, int]:
        """Return, by index, the positions of those of the nodes that are scored."""
        found = ((index, bisect_left(self.scored, index)) for index in nodes)
        return {index: place for index, place in found if self.scored[place : place + 1] == [index]}


class SoftSpread:
    """Scores nodes by the soft constraints of a pod."""

    def __init__(self, state: State, admission: Admission) -> None:
        self._state = state
        self._admission = admission
        self._scenes: dict[frozenset[str], _Scene] = {}

    def scores(
        self, pod: Pod, constraints: Sequence[Constraint], scored: Nodes, passed_over: AbstractSet[int]
    ) -> list[int]:
        """Return the score of each node, 100 for the lowest sum.

        Args:
            pod: the pod.
            constraints: its soft constraints.
            scored: the nodes, sorted.
            passed_over: the nodes whose pods do not count for domains other than hosts.
        """
        scene = self._scene(scored, self._telling(constraints))
        piles = [self._pile(pod, each, scene, passed_over) for each in constraints]
        without_hosts = [pile._replace(hosts={}) for pile in piles]
        by_kind = {kind: _weighed(without_hosts, index) for kind, index in scene.examples.items()}
        crowded = scene.places(set().union(*(pile.hosts for pile in piles)))
        return _scored(scene, by_kind, {place: _weighed(piles, index) for index, place in crowded.items()})

    def _telling(self, constraints: Sequence[Constraint]) -> frozenset[str]:
        """Return the labels that tell kinds of nodes apart; host names do not, as long as each node has one."""
        keys = frozenset(each.topology_key for each in constraints)
        return keys if None in self._state.domains(HOSTNAME) else keys - {HOSTNAME}

    def _scene(self, scored: Nodes, keys: frozenset[str]) -> _Scene:
        """Return the scene of these nodes; as a rule they are those of the previous question, so it is kept."""
        last = self._scenes.get(keys)
        if last is None or last.scored != scored:
            groups = self._state.alike.groups(keys)
            last = self._scenes[keys] = _Scene(scored, self._state.alike.kinds(keys), [group[0] for group in groups])
        return last

    def _pile(self, pod: Pod, constraint: Constraint, scene: _Scene, passed_over: AbstractSet[int]) -> _Pile:
        values = self._state.values(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            hosts = self._state.tallies.tally(constraint.matcher).counts
            return _Pile(constraint.max_skew - 1, log(len(scene.scored) + 2), values, {}, hosts)
        counts = self._tallied(pod, constraint, passed_over)
        return _Pile(constraint.max_skew - 1, log(len(scene.domains(values)) + 2), values, counts, {})

    def _tallied(self, pod: Pod, constraint: Constraint, passed_over: AbstractSet[int]) -> Mapping[str | None, int]:
        """Return the number of pods in each domain that has any."""
        admitted = self._admission.nodes(pod, constraint)
        values, counts = self._state.values(constraint.topology_key), defaultdict[str | None, int](int)
        for index, count in self._state.tallies.tally(constraint.matcher).counts.items():
            if index not in passed_over and (admitted is None or index in admitted):
                counts[values[index]] += count
        return counts


def _weighed(piles: Sequence[_Pile], index: int) -> int:
    total = 0.0
    for pile in piles:
        value = pile.values[index]
        if value is not None:
            count = pile.hosts.get(index, 0) or pile.counts.get(value, 0)
            total += count * pile.weight + float(pile.allowance)
    return rounded(total)


def _scored(scene: _Scene, by_kind: Mapping[int, int], crowded: Mapping[int, int]) -> list[int]:
    """Return the score of each node.

    Args:
        scene: the nodes.
        by_kind: the sum of nodes without counted pods.
        crowded: the sums of the others, by position.
    """
    left = scene.sizes.copy()  # of each kind, the nodes without counted pods: only sums that occur are compared
    left.subtract(scene.kinds[place] for place in crowded)
    points = _points({*(by_kind[kind] for kind, count in left.items() if count), *crowded.values()})
    of_kind = {kind: points.get(total, 0) for kind, total in by_kind.items()}
    scores = list(map(of_kind.__getitem__, scene.kinds))
    for place, total in crowded.items():
        scores[place] = points[total]
    return scores


def _points(sums: Collection[int]) -> dict[int, int]:
    """Return the score that each sum makes: the other way round, so that the lowest sum makes 100."""
    most, least = max(sums, default=0), min(sums, default=0)
    return {total: WHOLE * (most + least - total) // most if most else WHOLE for total in sums}


SKEWED = ("node(s) didn't match pod topology spread constraints",)
NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)
NO_NODES: frozenset[int] = frozenset()
_ENDLESS = 2**31
#: With so few domains, as of zones, the nodes of those that are full are put together once and kept.
_FEW_DOMAINS = 8


class _Ground(NamedTuple):
    """Where a hard constraint counts pods.

    Attributes:
        nodes: the nodes that count, by index.
        empty: 0 for each domain with such a node.
    """

    nodes: frozenset[int]
    empty: Mapping[str | None, int]


def _refusals(domains: Mapping[str | None, Collection[int]], full: Iterable[str | None]) -> Refusals:
    """Return the nodes of domains that take no more pods, and those that lack the label."""
    refused = {index: SKEWED for value in full for index in domains[value]}
    return refused | dict.fromkeys(domains.get(None, ()), NO_LABEL)


class PodTopologySpread:
    """Refuses and scores nodes by how evenly pods are spread.

    Args:
        state: the cluster.
        defaults: default constraints of the profile; None for kube-scheduler's own.
    """

    name = "PodTopologySpread"

    def __init__(self, state: State, defaults: Sequence[SpreadConstraint] | None = None) -> None:
        self._state = state
        self._by_system = defaults is None
        self._constraints = Constraints(state, SYSTEM_DEFAULTS if defaults is None else defaults)
        self._admission = Admission(state)
        self._grounds: dict[tuple[str, tuple[str, ...], frozenset[int] | None], _Ground] = {}
        self._soft = SoftSpread(state, self._admission)
        self._known: dict[tuple[str, tuple[str | None, ...]], Refusals] = {}

    def refusals(self, pod: Pod, _nodes: Sequence[int]) -> Refusals:
        """Return the nodes where a hard constraint would be broken, or that lack a topology label."""
        constraints = self._constraints.of(pod, REQUIRED)
        if not constraints:
            return NO_REFUSALS
        each = [self._refused(pod, one, self._counts(pod, one, constraints)) for one in constraints]
        return each[0] if len(each) == 1 else {index: why for one in reversed(each) for index, why in one.items()}

    def _refused(self, pod: Pod, constraint: Constraint, counts: Mapping[str | None, int]) -> Refusals:
        domains = self._state.domains(constraint.topology_key)
        least = min(counts.values(), default=_ENDLESS) if len(counts) >= constraint.min_domains else 0
        most = constraint.max_skew + least - self._takes(constraint, pod)
        full = tuple([value for value, count in counts.items() if count > most])
        if len(domains) > _FEW_DOMAINS:
            return _refusals(domains, full)
        key = (constraint.topology_key, full)
        if key not in self._known:
            self._known[key] = _refusals(domains, full)
        return self._known[key]

    def _counts(self, pod: Pod, constraint: Constraint, constraints: Sequence[Constraint]) -> Mapping[str | None, int]:
        """Return the pods in each domain that the constraint counts."""
        ground = self._ground(pod, constraint, constraints)
        values, counts = self._state.values(constraint.topology_key), dict(ground.empty)
        for index, count in self._state.tallies.tally(constraint.matcher).counts.items():
            if index in ground.nodes:
                counts[values[index]] += count
        return counts

    def _ground(self, pod: Pod, constraint: Constraint, constraints: Sequence[Constraint]) -> _Ground:
        """Return where a hard constraint counts; that does not change, so it is worked out once for pods alike."""
        admitted = self._admission.nodes(pod, constraint)
        keys = tuple(each.topology_key for each in constraints)
        known = self._grounds.get((constraint.topology_key, keys, admitted))
        if known is None:
            everywhere = frozenset(range(len(self._state.nodes))) if admitted is None else admitted
            counted = everywhere - self._lacking(constraints)
            values = self._state.values(constraint.topology_key)
            known = _Ground(counted, dict.fromkeys((values[index] for index in counted), 0))
            self._grounds[constraint.topology_key, keys, admitted] = known
        return known

    def _takes(self, constraint: Constraint, pod: Pod) -> bool:
        return constraint.matcher.takes(pod.namespace, {}, pod.labels)

    def scores(self, pod: Pod, nodes: Nodes) -> list[int] | None:
        """Return 100 for the nodes with the lowest sum, less for others; None without soft constraints."""
        constraints = self._constraints.of(pod, PREFERRED)
        if not constraints:
            return None
        lacking = self._lacking(constraints) if pod.spec.spread or not self._by_system else NO_NODES
        if not lacking:
            return self._soft.scores(pod, constraints, nodes, NO_NODES)
        scored = nodes.without(lacking)
        by_node = dict(zip(scored, self._soft.scores(pod, constraints, scored, lacking), strict=True))
        return [by_node.get(index, 0) for index in nodes]

    def _lacking(self, constraints: Sequence[Constraint]) -> frozenset[int]:
        """Return the nodes that lack a topology label; as a rule there is none."""
        without = (self._state.domains(each.topology_key).get(None, ()) for each in constraints)
        return NO_NODES.union(*without)
