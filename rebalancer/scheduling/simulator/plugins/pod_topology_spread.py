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

from collections.abc import Sequence
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.scheduling.simulator.constraints import (
    PREFERRED,
    REQUIRED,
    SYSTEM_DEFAULTS,
    Admission,
    Constraint,
    Constraints,
)
from rebalancer.scheduling.simulator.nodes import WHOLE, ByNode, Mask, Nodes
from rebalancer.scheduling.simulator.plugin import Reasons, Refusals
from rebalancer.scheduling.simulator.state import HOSTNAME, State

SKEWED = ("node(s) didn't match pod topology spread constraints",)
NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)
_HALF = 0.5


class _Ground(NamedTuple):
    """Where a hard constraint counts pods.

    Attributes:
        nodes: whether a node counts, by index.
        domains: whether there is such a node in a domain, by its number.
    """

    nodes: Mask
    domains: Mask


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
        self._grounds: dict[object, _Ground] = {}
        self._none = np.zeros(len(state.nodes), dtype=np.bool_)

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes where a hard constraint would be broken, or that lack a topology label."""
        constraints = self._constraints.of(pod, REQUIRED)
        if not constraints:
            return None
        found: list[tuple[Mask, Reasons]] = []
        for each in constraints:
            found.append((self._full(pod, each, self._ground(pod, each, constraints)), SKEWED))
            found.append((self._state.lacking(each.topology_key), NO_LABEL))
        return Refusals.joined(found)

    def _full(self, pod: Pod, constraint: Constraint, ground: _Ground) -> Mask:
        """Return the nodes of domains that take no more pods."""
        numbers = self._by_domain(constraint, ground.nodes)
        counted = numbers[ground.domains]
        least = counted.min() if len(counted) >= constraint.min_domains else 0
        most = constraint.max_skew + least - constraint.matcher.takes(pod.namespace, {}, pod.labels)
        full: Mask = ground.domains & (numbers > most)
        return full.take(self._state.domain_of(constraint.topology_key))

    def _ground(self, pod: Pod, constraint: Constraint, constraints: Sequence[Constraint]) -> _Ground:
        """Return where a hard constraint counts; that does not change, so it is worked out once for pods alike."""
        key, admitted = constraint.topology_key, self._admission.nodes(pod, constraint)
        alike = (key, tuple([each.topology_key for each in constraints]), id(admitted))
        known = self._grounds.get(alike)
        if known is None:
            nodes = self._counting(admitted, self._lacking(constraints))
            domains = np.zeros(len(self._state.domains(key)), dtype=np.bool_)
            domains[self._state.domain_of(key)[nodes]] = True
            known = self._grounds[alike] = _Ground(nodes, domains)
        return known

    def _counting(self, admitted: Mask | None, lacking: Mask) -> Mask:
        return ~lacking if admitted is None else admitted & ~lacking

    def _by_domain(self, constraint: Constraint, counting: Mask) -> NDArray[Any]:
        """Return how many pods a constraint counts in each domain, by its number, on the nodes that count."""
        key = constraint.topology_key
        nodes, counts = self._counted(constraint)
        numbers: NDArray[Any] = np.bincount(
            self._state.domain_of(key)[nodes], counts * counting[nodes], len(self._state.domains(key))
        )
        return numbers

    def _counted(self, constraint: Constraint) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the nodes with pods that a constraint counts, and how many."""
        found = self._state.tallies.tally(constraint.matcher).counts
        return np.fromiter(found, np.intp, len(found)), np.fromiter(found.values(), np.float64, len(found))

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return 100 for the nodes with the lowest sum, less for others; None without soft constraints."""
        constraints = self._constraints.of(pod, PREFERRED)
        if not constraints:
            return None
        lacking = self._lacking(constraints) if pod.spec.spread or not self._by_system else self._none
        scored = nodes.without(lacking)
        sums = np.zeros(len(scored))
        for each in constraints:
            sums += self._sums(pod, each, scored, lacking)
        scores = np.zeros(len(nodes), dtype=np.int64)
        scores[~nodes.of(lacking)] = _reversed(np.floor(sums) + (sums - np.floor(sums) >= _HALF))
        return scores

    def _sums(self, pod: Pod, constraint: Constraint, scored: Nodes, lacking: Mask) -> NDArray[np.float64]:
        """Return what a soft constraint adds to the sum of each node, 0 without the label."""
        key, domain_of = constraint.topology_key, scored.of(self._state.domain_of(constraint.topology_key))
        if key == HOSTNAME:
            nodes, counts = self._counted(constraint)
            by_node = np.zeros(len(self._state.nodes))
            by_node[nodes] = counts
            pods, size = scored.of(by_node), len(scored)
        else:
            admitted = self._admission.nodes(pod, constraint)
            pods = self._by_domain(constraint, self._counting(admitted, lacking)).take(domain_of)
            size = self._size(key, domain_of)
        labelled = ~scored.of(self._state.lacking(key))
        return (pods * log(size + 2) + (constraint.max_skew - 1)) * labelled

    def _size(self, key: str, domain_of: NDArray[np.intp]) -> int:
        """Return in how many domains these nodes are; those without the label are in the one without a name."""
        domains = self._state.domains(key)
        are_there = np.bincount(domain_of, minlength=len(domains)).tolist()
        return len({value or "" for value, is_there in zip(domains, are_there, strict=True) if is_there})

    def _lacking(self, constraints: Sequence[Constraint]) -> Mask:
        """Return the nodes that lack a topology label; as a rule there is none."""
        without = [self._state.lacking(each.topology_key) for each in constraints]
        lacking: Mask = np.logical_or.reduce([self._none, *without])
        return lacking


def _reversed(sums: NDArray[np.float64]) -> ByNode:
    """Return the scores that sums make: the other way round, so that the lowest makes 100."""
    whole = sums.astype(np.int64)
    most, least = (int(whole.max()), int(whole.min())) if len(whole) else (0, 0)
    return WHOLE * (most + least - whole) // most if most else whole + WHOLE
