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

from collections.abc import Mapping, Sequence
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
from rebalancer.scheduling.simulator.nodes import Nodes
from rebalancer.scheduling.simulator.plugin import NO_REFUSALS, Refusals
from rebalancer.scheduling.simulator.soft_spread import SoftSpread
from rebalancer.scheduling.simulator.state import State

SKEWED = ("node(s) didn't match pod topology spread constraints",)
NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)
NO_NODES: frozenset[int] = frozenset()
_ENDLESS = 2**31


class _Ground(NamedTuple):
    """Where a hard constraint counts pods.

    Attributes:
        nodes: the nodes that count, by index.
        empty: 0 for each domain with such a node.
    """

    nodes: frozenset[int]
    empty: Mapping[str | None, int]


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

    def refusals(self, pod: Pod, _nodes: Sequence[int]) -> Refusals:
        """Return the nodes where a hard constraint would be broken, or that lack a topology label."""
        constraints = self._constraints.of(pod, REQUIRED)
        if not constraints:
            return NO_REFUSALS
        found: dict[int, tuple[str, ...]] = {}
        for constraint in reversed(constraints):
            found.update(self._refused(pod, constraint, self._counts(pod, constraint, constraints)))
        return found

    def _refused(self, pod: Pod, constraint: Constraint, counts: Mapping[str | None, int]) -> Refusals:
        domains = self._state.domains(constraint.topology_key)
        least = min(counts.values(), default=_ENDLESS) if len(counts) >= constraint.min_domains else 0
        most = constraint.max_skew + least - self._takes(constraint, pod)
        refused = {index: SKEWED for value, count in counts.items() if count > most for index in domains[value]}
        return refused | dict.fromkeys(domains.get(None, ()), NO_LABEL)

    def _counts(self, pod: Pod, constraint: Constraint, constraints: Sequence[Constraint]) -> Mapping[str | None, int]:
        """Return the pods in each domain that the constraint counts."""
        ground = self._ground(pod, constraint, constraints)
        values, counts = self._state.values(constraint.topology_key), dict(ground.empty)
        for index, count in self._state.tallies.tally(constraint.matcher).nodes.items():
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
