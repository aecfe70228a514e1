"""PodTopologySpread: no domain may, or should, have many more of the selected pods than another.

Source: the Kubernetes documentation, Pod Topology Spread Constraints.  Terminating pods do not count.

A hard constraint counts pods on the nodes that have all the keys of the pod's hard constraints.  It refuses a domain if
its pods, with the new one if selected, would exceed those of the smallest domain by more than `maxSkew`.  With fewer
domains than `minDomains`, the smallest counts as 0.

Soft constraints score a node: (1) for each, the pods in its domain times log(number of domains + 2), plus `maxSkew`
less 1; (2) the sum, rounded; (3) reversed: 100 * (highest + lowest - sum) // highest.

Example: zones with 3, 2 and 1 pods and `maxSkew` 1.  Hard: a new pod that is selected may go to the third zone only.
Soft: log(5) = 1.61, so the sums are 5, 3 and 2, and the scores 40, 80 and 100.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import log
from typing import NamedTuple

from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.scheduling.simulator.arithmetic import WHOLE, rounded
from rebalancer.scheduling.simulator.constraints import (
    PREFERRED,
    REQUIRED,
    SYSTEM_DEFAULTS,
    Admission,
    Constraint,
    Constraints,
)
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.state import HOSTNAME, State

SKEWED = ("node(s) didn't match pod topology spread constraints",)
NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)
_ENDLESS = 2**31


class _Pile(NamedTuple):
    """What one soft constraint adds to the sum of each node.

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
    counts: Mapping[str, int]
    hosts: Mapping[int, int]


class _Scene:
    """Nodes that are scored, and what depends on them alone.

    Attributes:
        scored: the nodes, by index.
        kinds: the kind of each node (see `State.kinds`).
        examples: by kind, one node of it.
    """

    def __init__(self, scored: Sequence[int], kinds: Sequence[int]) -> None:
        self.scored = list(scored)
        self.kinds = [kinds[index] for index in scored]
        self.examples = dict(zip(self.kinds, scored, strict=True))

    def domains(self, values: Sequence[str | None]) -> set[str]:
        """Return the values of a label, empty where it is missing; nodes of one kind have the same."""
        return {values[index] or "" for index in self.examples.values()}


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
        self._last: _Scene | None = None

    def refusals(self, pod: Pod, nodes: Sequence[int]) -> Refusals:
        """Return the nodes where a hard constraint would be broken, or that lack a topology label."""
        constraints = self._constraints.of(pod, REQUIRED)
        if not constraints:
            return NO_REFUSALS
        labelled = self._labelled(constraints, range(len(self._state.nodes)))
        found: dict[int, tuple[str, ...]] = {}
        for constraint in reversed(constraints):
            found.update(self._refused(pod, constraint, labelled, nodes))
        return found

    def _refused(
        self, pod: Pod, constraint: Constraint, labelled: Collection[int], nodes: Sequence[int]
    ) -> dict[int, tuple[str, ...]]:
        values, counts = self._state.values(constraint.topology_key), self._counts(pod, constraint, labelled)
        least = min(counts.values(), default=_ENDLESS) if len(counts) >= constraint.min_domains else 0
        most = constraint.max_skew + least - self._takes(constraint, pod)
        refused: dict[int, tuple[str, ...]] = {
            index: SKEWED for index in nodes if counts.get(values[index] or "", 0) > most
        }
        return refused | {index: NO_LABEL for index in nodes if values[index] is None}

    def _counts(self, pod: Pod, constraint: Constraint, among: Collection[int]) -> Mapping[str, int]:
        """Return the pods in each domain that the constraint counts."""
        admitted = self._admission.nodes(pod, constraint)
        counted = set(among) if admitted is None else admitted.intersection(among)
        values = self._state.values(constraint.topology_key)
        counts = {value: 0 for index in counted if (value := values[index]) is not None}
        for index, count in self._state.tallies.tally(constraint.matcher).nodes.items():
            if index in counted:
                counts[values[index] or ""] += count
        return counts

    def _takes(self, constraint: Constraint, pod: Pod) -> bool:
        return constraint.matcher.takes(pod.namespace, {}, pod.labels)

    def _labelled(self, constraints: Sequence[Constraint], nodes: Collection[int]) -> Sequence[int]:
        """Return the nodes that have all topology labels."""
        kept = list(nodes)
        for constraint in constraints:
            values = self._state.values(constraint.topology_key)
            kept = [index for index in kept if values[index] is not None]
        return kept

    def scores(self, pod: Pod, nodes: Sequence[int]) -> list[int] | None:
        """Return 100 for the nodes with the lowest sum, less for others; None without soft constraints."""
        constraints = self._constraints.of(pod, PREFERRED)
        if not constraints:
            return None
        all_labels = bool(pod.spec.spread) or not self._by_system
        scored = self._labelled(constraints, nodes) if all_labels else nodes
        raw = self._raw(pod, constraints, scored, all_labels=all_labels)
        by_node = dict(zip(scored, _turned_round(raw), strict=True)) if len(scored) < len(nodes) else None
        return _turned_round(raw) if by_node is None else [by_node.get(index, 0) for index in nodes]

    def _raw(
        self, pod: Pod, constraints: Sequence[Constraint], scored: Sequence[int], *, all_labels: bool
    ) -> list[int]:
        """Return the sums; worked out once per kind of node, and singly for nodes with counted pods on them."""
        piles = [self._pile(pod, each, scored, all_labels=all_labels) for each in constraints]
        crowded = set().union(*(pile.hosts for pile in piles))
        scene = self._scene(scored)
        empty = [pile._replace(hosts={}) for pile in piles]
        by_kind = {kind: _weighed(empty, index) for kind, index in scene.examples.items()}
        found = [by_kind[kind] for kind in scene.kinds]
        for index in crowded:
            place = bisect_left(scored, index)
            if place < len(scored) and scored[place] == index:
                found[place] = _weighed(piles, index)
        return found

    def _scene(self, scored: Sequence[int]) -> _Scene:
        """Return the scene of these nodes; as a rule they are those of the previous question, so it is kept."""
        if self._last is None or self._last.scored != scored:
            self._last = _Scene(scored, self._state.kinds)
        return self._last

    def _pile(self, pod: Pod, constraint: Constraint, scored: Sequence[int], *, all_labels: bool) -> _Pile:
        values = self._state.values(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            hosts = self._state.tallies.tally(constraint.matcher).nodes
            return _Pile(constraint.max_skew - 1, log(len(scored) + 2), values, {}, hosts)
        domains = self._scene(scored).domains(values)
        everywhere = range(len(self._state.nodes))
        among = self._labelled(self._constraints.of(pod, PREFERRED), everywhere) if all_labels else everywhere
        counts = self._tallied(pod, constraint, among)
        return _Pile(constraint.max_skew - 1, log(len(domains) + 2), values, counts, {})

    def _tallied(self, pod: Pod, constraint: Constraint, among: Collection[int]) -> Mapping[str, int]:
        """Return the number of pods in each domain that has any."""
        admitted = self._admission.nodes(pod, constraint)
        labelled = among if isinstance(among, range) else set(among)
        values, counts = self._state.values(constraint.topology_key), defaultdict[str, int](int)
        for index, count in self._state.tallies.tally(constraint.matcher).nodes.items():
            if index in labelled and (admitted is None or index in admitted):
                counts[values[index] or ""] += count
        return counts


def _weighed(piles: Sequence[_Pile], index: int) -> int:
    total = 0.0
    for pile in piles:
        value = pile.values[index]
        if value is not None:
            count = pile.hosts.get(index, 0) or pile.counts.get(value, 0)
            total += count * pile.weight + float(pile.allowance)
    return rounded(total)


def _turned_round(raw: Sequence[int]) -> list[int]:
    most, least = max(raw, default=0), min(raw, default=0)
    if most == 0:
        return [WHOLE] * len(raw)
    points = {value: WHOLE * (most + least - value) // most for value in set(raw)}
    return [points[value] for value in raw]
