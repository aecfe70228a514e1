"""TaintToleration and NodeUnschedulable: hard taints and cordons refuse, soft taints (PreferNoSchedule) count against.

Source: the Kubernetes documentation, Taints and Tolerations; Manual Node administration; scheduling profiles (weight
3).  Scores are reversed: 100 where no soft taint is untolerated, 0 on the node with the most.  Up to 1.34 the reason
names the taint (kubernetes/kubernetes#134740; 1.34.2 has the change too).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rebalancer.cluster.pod import Pod, PodSpec
from rebalancer.cluster.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, hard, untolerated
from rebalancer.scheduling.simulator.nodes import ByNode, Nodes, scaled
from rebalancer.scheduling.simulator.plugin import Reasons, Refusals
from rebalancer.scheduling.simulator.state import State

_TAINT_NOT_NAMED = 35

#: By index of the node, taints that are assumed in addition to those that were read.
SoftTaints = Mapping[int, Sequence[Taint]]


class TaintToleration:
    """Refuses nodes with hard taints, and scores by soft ones."""

    name = "TaintToleration"

    def __init__(self, state: State) -> None:
        self._state = state
        self._names_taint = state.minor < _TAINT_NOT_NAMED
        self._hard = [index for index, node in enumerate(state.nodes) if any(map(hard, node.taints))]
        self._counts: dict[tuple[Toleration, ...], tuple[SoftTaints, ByNode]] = {}
        # By taints alone there are few kinds of nodes; soft taints are counted once for each kind.
        groups = state.alike.groups(frozenset())
        self._soft = [group for group in groups if any(map(_is_soft, state.nodes[group[0]].taints))]

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the nodes with a hard taint that the pod does not tolerate."""
        found: dict[int, Reasons] = {}
        for index in self._hard:
            taint = untolerated(pod.spec.tolerations, self._state.nodes[index].taints)
            if taint:
                named = f" {{{taint.key}: {taint.value}}}" if self._names_taint else "(s)"
                found[index] = (f"node(s) had untolerated taint{named}",)
        return Refusals.of(found, len(self._state.nodes))

    def scores(self, pod: Pod, nodes: Nodes) -> ByNode:
        """Return 100 for nodes without untolerated soft taints, less for others."""
        more = self._state.soft_taints
        known = self._counts.get(pod.spec.tolerations)
        if known is None or known[0] is not more:
            known = self._counts[pod.spec.tolerations] = (more, self._count(pod.spec))
        return scaled(nodes.of(known[1]), reverse=True)

    def _count(self, spec: PodSpec) -> ByNode:
        counts = np.zeros(len(self._state.nodes), dtype=np.int64)
        for group in self._soft:
            counts[group] = soft_taints(spec, self._state.nodes[group[0]].taints)
        found: dict[int, int] = {}  # many nodes share the very same taints
        for index, taints in self._state.soft_taints.items():
            if id(taints) not in found:
                found[id(taints)] = soft_taints(spec, taints)
            counts[index] += found[id(taints)]
        return counts


def soft_taints(spec: PodSpec, taints: Iterable[Taint]) -> int:
    """Return how many soft taints are not tolerated; only tolerations of that effect, or of any, count."""
    held = [each for each in spec.tolerations if each.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(_is_soft(taint) and not any(each.tolerates(taint) for each in held) for taint in taints)


def _is_soft(taint: Taint) -> bool:
    return taint.effect == PREFER_NO_SCHEDULE


CORDONED = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
REASON = ("node(s) were unschedulable",)


class NodeUnschedulable:
    """Refuses cordoned nodes."""

    name = "NodeUnschedulable"

    def __init__(self, state: State) -> None:
        cordoned = (index for index, node in enumerate(state.nodes) if node.unschedulable)
        self._cordoned = Refusals.of(dict.fromkeys(cordoned, REASON), len(state.nodes))

    def refusals(self, pod: Pod, _nodes: Nodes) -> Refusals | None:
        """Return the cordoned nodes, unless the pod tolerates that."""
        return None if any(each.tolerates(CORDONED) for each in pod.spec.tolerations) else self._cordoned
