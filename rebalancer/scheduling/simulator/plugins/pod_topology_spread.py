"""PodTopologySpread: no domain may, or should, have many more of the selected pods than another.

Source: the Kubernetes documentation, Pod Topology Spread Constraints (cluster-level defaults; the selectors of the
Services, ReplicaSets, ReplicationControllers and StatefulSets that the pod belongs to).  Terminating pods do not count.

A hard constraint counts pods on the nodes that have all the keys of the pod's hard constraints.  It refuses a domain if
its pods, with the new one if selected, would exceed those of the smallest domain by more than `maxSkew`.  With fewer
domains than `minDomains`, the smallest counts as 0.

Soft constraints score a node: (1) for each, the pods in its domain times log(number of domains + 2), plus `maxSkew`
less 1; (2) the sum, rounded; (3) reversed: 100 * (highest + lowest - sum) // highest.

Example: zones with 3, 2 and 1 pods and `maxSkew` 1.  Hard: a new pod that is selected may go to the third zone only.
Soft: log(5) = 1.61, so the sums are 5, 3 and 2, and the scores 40, 80 and 100.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rebalancer.cluster.label_index import SelectorIndex
from rebalancer.cluster.pod import Int32, Pod, PodSpec, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.cluster.selectors import EVERYTHING, Labels, LabelSelector
from rebalancer.cluster.taints import untolerated
from rebalancer.scheduling.equivalence import asked_labels
from rebalancer.scheduling.simulator.plugin import (
    WHOLE,
    ByNode,
    Mask,
    Nodes,
    Reasons,
    Refusals,
    UnknownPlacementError,
    rounded,
)
from rebalancer.scheduling.simulator.replacement import of_constraint
from rebalancer.scheduling.simulator.state import HOSTNAME, State
from rebalancer.scheduling.simulator.tally import MatchedPods, Matcher

REQUIRED = "DoNotSchedule"
_PREFERRED = "ScheduleAnyway"
_HONOR = "Honor"
_SKEWED = ("node(s) didn't match pod topology spread constraints",)
_NO_LABEL = ("node(s) didn't match pod topology spread constraints (missing required label)",)

#: By kind of the owners whose selectors count for default constraints, where those were read into.
SELECTING_OWNERS = {
    "ReplicaSet": "replica_sets",
    "ReplicationController": "replication_controllers",
    "StatefulSet": "stateful_sets",
}


class _Declared(msgspec.Struct, rename="camel", frozen=True):
    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str


class PodTopologySpreadArgs(msgspec.Struct, rename="camel", frozen=True):
    """The default constraints of the profile; unless they are a list, they are kube-scheduler's own."""

    default_constraints: tuple[_Declared, ...] = ()
    defaulting_type: str = "System"


_BY_SYSTEM = (_Declared(3, HOSTNAME, _PREFERRED), _Declared(5, "topology.kubernetes.io/zone", _PREFERRED))


class _Constraint(msgspec.Struct, frozen=True, gc=False):
    """A constraint as it applies to a pod, its selector worked out."""

    topology_key: str
    max_skew: int
    matcher: Matcher
    min_domains: int
    by_affinity: bool
    by_taints: bool


def _constraint(declared: SpreadConstraint, selector: LabelSelector | None, pod: Pod) -> _Constraint:
    condition = MatchedPods(frozenset((pod.namespace,)), selector)
    return _Constraint(
        declared.topology_key,
        declared.max_skew,
        Matcher((condition,), running_only=True),
        max(declared.min_domains or 1, 1),
        declared.node_affinity_policy == _HONOR,
        declared.node_taints_policy == _HONOR,
    )


class _DefaultSelectors:
    """The selectors of default constraints: those of a pod's Services and of its controller, combined."""

    def __init__(self, scheduler_inputs: SchedulerInputs) -> None:
        self._inputs = scheduler_inputs
        self._services: defaultdict[str, SelectorIndex[LabelSelector]] = defaultdict(SelectorIndex)
        for (namespace, _), selector in (scheduler_inputs.services or {}).items():
            if selector:
                self._services[namespace].add(selector, selector)

    def of(self, pod: Pod) -> LabelSelector:
        """Return the selector, empty where nothing selects the pod."""
        if self._inputs.services is None:
            raise UnknownPlacementError("default spreading goes by Services, which were not read")
        by_services: dict[str, str] = {}
        for each in self._services[pod.namespace].matching(pod.labels):
            by_services.update({asked.key: asked.values[0] for asked in each.requirements})
        selector = EVERYTHING.narrowed(by_services, by_services)
        owner = next((each for each in pod.owners if each.controller), None)
        owned = self._by_owner(owner.kind).get((pod.namespace, owner.name)) if owner else None
        if owned is None:
            return selector
        return LabelSelector(tuple(sorted({*selector.requirements, *owned.requirements})))

    def _by_owner(self, kind: str) -> Mapping[tuple[str, str], LabelSelector | None]:
        if kind not in SELECTING_OWNERS:
            return {}
        selectors: Mapping[tuple[str, str], LabelSelector | None] | None = getattr(self._inputs, SELECTING_OWNERS[kind])
        if selectors is None:
            raise UnknownPlacementError(f"default spreading goes by {kind}s, which were not read")
        return selectors


class _Ground(NamedTuple):
    """Where a hard constraint counts pods."""

    nodes: Mask  # whether a node counts, by index
    domains: Mask  # whether there is such a node in a domain, by its number


class PodTopologySpread:
    """Refuses and scores nodes by how evenly pods are spread."""

    name = "PodTopologySpread"
    Args = PodTopologySpreadArgs

    def __init__(self, state: State, args: PodTopologySpreadArgs) -> None:
        self._state = state
        self._by_system = args.defaulting_type != "List"
        declared = _BY_SYSTEM if self._by_system else args.default_constraints
        self._defaults = [
            SpreadConstraint(each.max_skew, each.topology_key, each.when_unsatisfiable, None) for each in declared
        ]
        self._selectors = _DefaultSelectors(state.scheduler_inputs)
        self._constraints: dict[object, tuple[PodSpec, Labels, list[_Constraint]]] = {}
        self._admitted: dict[object, Mask] = {}
        self._grounds: dict[object, _Ground] = {}
        self._without: dict[tuple[str, ...], Mask] = {}  # nodes that lack one of these labels
        self._none = np.zeros(len(state.nodes), dtype=np.bool_)
        self._all = ~self._none

    def constraints_of(self, pod: Pod, when: str) -> list[_Constraint]:
        """Return the constraints of one kind: the pod's own, or, if it declares none, the defaults."""
        key = (id(pod.spec), id(pod.labels), pod.namespace, pod.owners, when)
        known = self._constraints.get(key)
        if known is None:  # the value keeps what is told by its identity alive
            known = self._constraints[key] = (pod.spec, pod.labels, self._work_out(pod, when))
        return known[2]

    def _work_out(self, pod: Pod, when: str) -> list[_Constraint]:
        declared = [each for each in pod.spec.spread or self._defaults if each.when_unsatisfiable == when]
        if pod.spec.spread:
            return [_constraint(each, of_constraint(each, pod.labels), pod) for each in declared]
        selector = self._selectors.of(pod) if declared else None
        return [_constraint(each, selector, pod) for each in declared] if selector else []

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes where a hard constraint would be broken, or that lack a topology label."""
        constraints = self.constraints_of(pod, REQUIRED)
        if not constraints:
            return None
        found: list[tuple[Mask, Reasons]] = []
        lacking = self._lacking(constraints)
        for each in constraints:
            found.append((self._full(pod, each, self._ground(pod, each, lacking)), _SKEWED))
            found.append((self._state.domains(each.topology_key).lacking, _NO_LABEL))
        return Refusals.joined(found)

    def _full(self, pod: Pod, constraint: _Constraint, ground: _Ground) -> Mask:
        numbers = self._by_domain(constraint, ground.nodes)
        counted = numbers[ground.domains]
        least = counted.min() if len(counted) >= constraint.min_domains else 0
        most = constraint.max_skew + least - constraint.matcher.takes(pod.namespace, {}, pod.labels)
        full: Mask = ground.domains & (numbers > most)
        return full.take(self._state.domains(constraint.topology_key).of_node)

    def _ground(self, pod: Pod, constraint: _Constraint, lacking: Mask) -> _Ground:
        """Return where a hard constraint counts; that does not change, so it is worked out once for pods alike."""
        found, admitted = self._state.domains(constraint.topology_key), self._admission(pod, constraint)
        alike = (id(found), id(lacking), id(admitted))
        known = self._grounds.get(alike)
        if known is None:
            nodes = admitted & ~lacking
            domains = np.zeros(len(found.numbers), dtype=np.bool_)
            domains[found.of_node[nodes]] = True
            known = self._grounds[alike] = _Ground(nodes, domains)
        return known

    def _admission(self, pod: Pod, constraint: _Constraint) -> Mask:
        """Return which nodes count by the pod's affinity and tolerations."""
        spec, by_taints = pod.spec, constraint.by_taints
        by_affinity = constraint.by_affinity and bool(spec.node_selector or spec.node_terms is not None)
        if not by_affinity and not by_taints:
            return self._all
        key = (self._state.demands.of(spec), by_affinity, by_taints)
        known = self._admitted.get(key)
        if known is None:
            known = self._admitted[key] = np.zeros(len(self._state.nodes), dtype=np.bool_)
            asked = asked_labels(spec.node_selector, spec.node_terms or ()) if by_affinity else frozenset()
            for group in self._state.alike.groups(asked):
                node = self._state.nodes[group[0]]
                known[group] = (not by_affinity or spec.selects_node(node.labels, node.name)) and not (
                    by_taints and untolerated(spec.tolerations, node.taints)
                )
        return known

    def _by_domain(self, constraint: _Constraint, counting: Mask) -> ByNode:
        return self._state.by_domain(constraint.topology_key, self._state.tallies.tally(constraint.matcher), counting)

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode | None:
        """Return 100 for the nodes with the lowest sum, less for others; None without soft constraints."""
        constraints = self.constraints_of(pod, _PREFERRED)
        if not constraints:
            return None
        lacking = self._lacking(constraints) if pod.spec.spread or not self._by_system else self._none
        scored = nodes.without(lacking)
        sums = np.zeros(len(scored))
        for each in constraints:
            sums += self._sums(pod, each, scored, lacking)
        scores = np.zeros(len(nodes), dtype=np.int64)
        scores[~nodes.of(lacking)] = _reversed(rounded(sums))
        return scores

    def _sums(self, pod: Pod, constraint: _Constraint, scored: Nodes, lacking: Mask) -> NDArray[np.floating[Any]]:
        """Return what a soft constraint adds to the sum of each node, 0 without the label."""
        values, of_node, without_label = self._state.domains(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            found = self._state.tallies.tally(constraint.matcher)
            by_node = np.zeros(len(self._state.nodes), dtype=np.int64)
            by_node[[*found]] = [*found.values()]
            pods, size = scored.of(by_node), len(scored)
        else:
            there = scored.of(of_node)
            pods = self._by_domain(constraint, self._admission(pod, constraint) & ~lacking).take(there)
            # Nodes without the label are in the domain without a name.
            counts = np.bincount(there, minlength=len(values)).tolist()
            size = len({value or "" for value, count in zip(values, counts, strict=True) if count})
        return (pods * log(size + 2) + (constraint.max_skew - 1)) * ~scored.of(without_label)

    def _lacking(self, constraints: Sequence[_Constraint]) -> Mask:
        keys, domains = tuple([each.topology_key for each in constraints]), self._state.domains
        if keys not in self._without:
            self._without[keys] = np.logical_or.reduce([self._none, *(domains(key).lacking for key in keys)])
        return self._without[keys]


def _reversed(whole: ByNode) -> ByNode:
    """Return the scores that sums make: the other way round, so that the lowest makes 100."""
    most, least = (int(whole.max()), int(whole.min())) if len(whole) else (0, 0)
    return WHOLE * (most + least - whole) // most if most else whole + WHOLE
