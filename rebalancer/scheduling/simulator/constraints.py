"""Topology spread constraints as they apply to a pod: its own, or the defaults of the profile.

Sources: the Kubernetes documentation, Pod Topology Spread Constraints (cluster-level defaults; the selectors of the
Services, ReplicaSets, ReplicationControllers and StatefulSets that the pod belongs to).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from rebalancer.cluster.pod import Pod, PodSpec, SpreadConstraint
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.cluster.selectors import EVERYTHING, Labels, LabelSelector
from rebalancer.cluster.taints import untolerated
from rebalancer.scheduling.equivalence import asked_labels
from rebalancer.scheduling.simulator.nodes import Mask
from rebalancer.scheduling.simulator.plugin import UnknownPlacementError
from rebalancer.scheduling.simulator.replacement import of_constraint
from rebalancer.scheduling.simulator.state import HOSTNAME, State
from rebalancer.scheduling.simulator.tally import MatchedPods, Matcher

REQUIRED = "DoNotSchedule"
PREFERRED = "ScheduleAnyway"
_HONOR = "Honor"
_ZONE = "topology.kubernetes.io/zone"

#: kube-scheduler's default constraints, for pods without any in a profile that sets none.
SYSTEM_DEFAULTS = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=PREFERRED, selector=None),
    SpreadConstraint(max_skew=5, topology_key=_ZONE, when_unsatisfiable=PREFERRED, selector=None),
)


#: By kind of the owners whose selectors count for default constraints, where those were read into.
SELECTING_OWNERS = {
    "ReplicaSet": "replica_sets",
    "ReplicationController": "replication_controllers",
    "StatefulSet": "stateful_sets",
}


class Constraint(msgspec.Struct, frozen=True, gc=False):
    """A constraint with its selector worked out."""

    topology_key: str
    max_skew: int
    matcher: Matcher
    min_domains: int
    by_affinity: bool
    by_taints: bool


class Constraints:
    """Works out the constraints of pods; those that declare none have the defaults."""

    def __init__(self, state: State, defaults: Sequence[SpreadConstraint] = SYSTEM_DEFAULTS) -> None:
        self._state = state
        self._defaults = tuple(defaults)
        self._selectors = DefaultSelectors(state.scheduler_inputs)
        self._known: dict[object, tuple[PodSpec, Labels, list[Constraint]]] = {}

    def of(self, pod: Pod, when: str) -> list[Constraint]:
        """Return the constraints of one kind.

        Raises:
            UnknownPlacementError: the defaults apply, and what their selector depends on was not read.
        """
        key = (id(pod.spec), id(pod.labels), pod.namespace, pod.owners, when)
        known = self._known.get(key)
        if known is None:  # the value keeps what is told by its identity alive
            known = self._known[key] = (pod.spec, pod.labels, self._work_out(pod, when))
        return known[2]

    def _work_out(self, pod: Pod, when: str) -> list[Constraint]:
        declared = [each for each in pod.spec.spread or self._defaults if each.when_unsatisfiable == when]
        if pod.spec.spread:
            return [_constraint(each, of_constraint(each, pod.labels), pod) for each in declared]
        if not declared:
            return []
        selector = self._selectors.of(pod)
        return [_constraint(each, selector, pod) for each in declared] if selector else []


def _constraint(declared: SpreadConstraint, selector: LabelSelector | None, pod: Pod) -> Constraint:
    condition = MatchedPods(frozenset((pod.namespace,)), selector)
    return Constraint(
        declared.topology_key,
        declared.max_skew,
        Matcher((condition,), running_only=True),
        declared.min_domains or 1,
        declared.node_affinity_policy == _HONOR,
        declared.node_taints_policy == _HONOR,
    )


class DefaultSelectors:
    """The selectors of default constraints: those of a pod's Services and of its controller, combined."""

    def __init__(self, scheduler_inputs: SchedulerInputs) -> None:
        self._inputs = scheduler_inputs
        self._services: defaultdict[tuple[str, str, str], list[LabelSelector]] = defaultdict(list)
        for (namespace, _), selector in (scheduler_inputs.services or {}).items():
            if selector:
                first = selector.requirements[0]
                self._services[namespace, first.key, first.values[0]].append(selector)

    def of(self, pod: Pod) -> LabelSelector:
        """Return the selector, empty where nothing selects the pod.

        Raises:
            UnknownPlacementError: a kind of object that it depends on was not read.
        """
        if self._inputs.services is None:
            raise UnknownPlacementError("default spreading goes by Services, which were not read")
        by_services = self._by_services(pod)
        selector = EVERYTHING.narrowed(by_services, by_services)
        owner = next((each for each in pod.owners if each.controller), None)
        owned = self._by_owner(owner.kind).get((pod.namespace, owner.name)) if owner else None
        if owned is None:
            return selector
        return LabelSelector(tuple(sorted({*selector.requirements, *owned.requirements})))

    def _by_services(self, pod: Pod) -> dict[str, str]:
        merged: dict[str, str] = {}
        for label in pod.labels.items():
            for selector in self._services.get((pod.namespace, *label), ()):
                if selector.matches(pod.labels):
                    merged.update({each.key: each.values[0] for each in selector.requirements})
        return merged

    def _by_owner(self, kind: str) -> Mapping[tuple[str, str], LabelSelector | None]:
        if kind not in SELECTING_OWNERS:
            return {}
        selectors: Mapping[tuple[str, str], LabelSelector | None] | None = getattr(self._inputs, SELECTING_OWNERS[kind])
        if selectors is None:
            raise UnknownPlacementError(f"default spreading goes by {kind}s, which were not read")
        return selectors


class Admission:
    """Which nodes count for a constraint, by the pod's affinity and tolerations."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[object, Mask] = {}

    def nodes(self, pod: Pod, constraint: Constraint) -> Mask | None:
        """Return which nodes count; None for all."""
        spec = pod.spec
        by_affinity = constraint.by_affinity and bool(spec.node_selector or spec.node_terms is not None)
        if not by_affinity and not constraint.by_taints:
            return None
        key = (self._state.demands.of(spec), by_affinity, constraint.by_taints)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._admitted(spec, by_affinity, constraint.by_taints)
        return known

    def _admitted(self, spec: PodSpec, by_affinity: bool, by_taints: bool) -> Mask:
        asked = asked_labels(spec.node_selector, spec.node_terms or ()) if by_affinity else frozenset()
        admitted = np.zeros(len(self._state.nodes), dtype=np.bool_)
        for group in self._state.alike.groups(asked):
            node = self._state.nodes[group[0]]
            admitted[group] = (not by_affinity or spec.selects_node(node.labels, node.name)) and not (
                by_taints and untolerated(spec.tolerations, node.taints)
            )
        return admitted
