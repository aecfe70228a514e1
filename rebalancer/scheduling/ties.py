"""How a pod that comes may keep another one, which comes after it, from nodes.

Rooms, ports, disks and rules between pods of one host concern only the node where the first one lands.  Other rules
between pods (required affinity, anti-affinity over zones, hard spreading, a claim that both use) may concern any node.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from rebalancer.cluster.placement import HostPort, PodAffinityTerm
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.selectors import Labels
from rebalancer.scheduling.simulator.plugins.node_ports import conflict
from rebalancer.scheduling.simulator.rules import condition_of
from rebalancer.scheduling.simulator.state import HOSTNAME
from rebalancer.scheduling.simulator.tally import MatchedPods

_HARD = "DoNotSchedule"


class Tie(IntEnum):
    """What a newcomer may do to a pod, from the mildest to the worst."""

    ROOM = 0  # takes what it requests of one node
    NODE = 1  # may keep the pod from one node altogether
    ANYWHERE = 2  # may keep the pod from any number of nodes


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A pod that comes, and the one in whose place it comes.

    Attributes:
        pod: as the scheduler gets it.
        old: the pod that goes for it; the same one where none goes.
        known: whether `pod` is what comes; if not, the old pod stands in for it.
    """

    pod: Pod
    old: Pod
    known: bool = True


class Ties:
    """Tells ties between newcomers to one cluster.

    Args:
        namespaces: labels by namespace; None if they were not read.
        hosts_differ: whether no two nodes have the same host name.
    """

    def __init__(self, namespaces: Mapping[str, Labels] | None, *, hosts_differ: bool) -> None:
        self._namespaces = namespaces
        self._hosts_differ = hosts_differ

    def of(self, first: Newcomer, then: Newcomer) -> Tie:
        """Return what the first newcomer may do to the other one if it comes before it."""
        if self._reaches_far(first, then):
            return Tie.ANYWHERE
        return Tie.NODE if not first.known or self._fills_a_node(first.pod, then.pod) else Tie.ROOM

    def _reaches_far(self, first: Newcomer, then: Newcomer) -> bool:
        one, other = first.pod, then.pod
        if {*one.claims, *one.own_claims} & {*other.claims, *other.own_claims} and one.namespace == other.namespace:
            return True
        if self._selected(other.spec.placement.affinity, other, first):
            return True
        if any(each.when_unsatisfiable == _HARD for each in other.spec.spread) and one.namespace == other.namespace:
            return _spread_with(other, first)
        return self._apart(one, other, near=False)

    def _fills_a_node(self, one: Pod, other: Pod) -> bool:
        ports = ((here, there) for here in _ports(one) for there in _ports(other))
        if any(conflict(here, there) for here, there in ports):
            return True
        if (one.spec.placement.disks or one.claims) and (other.spec.placement.disks or other.claims):
            return True  # disks that may not be shared, and the number of volumes that a node may have
        return self._apart(one, other, near=True)

    def _apart(self, one: Pod, other: Pod, *, near: bool) -> bool:
        """Return whether required anti-affinity of either selects the other, over hosts (near) or over more."""
        mine = [each for each in one.spec.anti_affinity if self._is_near(each) is near]
        theirs = [each for each in other.spec.anti_affinity if self._is_near(each) is near]
        return self._selected(mine, one, Newcomer(other, other)) or self._selected(theirs, other, Newcomer(one, one))

    def _is_near(self, term: PodAffinityTerm) -> bool:
        return self._hosts_differ and term.topology_key == HOSTNAME

    def _selected(self, terms: Iterable[PodAffinityTerm], pod: Pod, by: Newcomer) -> bool:
        return any(self._takes(term, pod.namespace, each) for term in terms for each in (by.pod, by.old))

    def _takes(self, term: PodAffinityTerm, namespace: str, pod: Pod) -> bool:
        return self._may_take(condition_of(term, namespace), pod)

    def _may_take(self, condition: MatchedPods, pod: Pod) -> bool:
        """Return whether a condition selects a pod, or may, since no labels of the pod's namespace are known."""
        known = (self._namespaces or {}).get(pod.namespace)
        unsure = known is None and condition.hangs_on_labels_of(pod.namespace, pod.labels)
        return unsure or condition.takes(pod.namespace, known or {}, pod.labels)


def _ports(pod: Pod) -> Sequence[HostPort]:
    placement = pod.spec.placement
    return (*placement.host_ports, *placement.sidecar_ports)


def _spread_with(pod: Pod, newcomer: Newcomer) -> bool:
    hard = [each.selector for each in pod.spec.spread if each.when_unsatisfiable == _HARD]
    labels = (newcomer.pod.labels, newcomer.old.labels)
    return any(selector.matches(each) for selector in hard if selector for each in labels)
