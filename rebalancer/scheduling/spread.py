"""Topology spread constraints: as they apply to pods, the domains they see, and how many pods should move.

Sources: the Kubernetes documentation (Pod Topology Spread Constraints) for the fields; the descheduler for what counts
and for the moves.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.label_index import of_pods
from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod, SpreadConstraint
from rebalancer.cluster.selectors import LabelSelector, NodeSelectorTerm, any_term_matches
from rebalancer.cluster.taints import Toleration, untolerated


class Restriction(msgspec.Struct, frozen=True, gc=False):
    """Which nodes a constraint counts: those that the pod selects and tolerates, where its policies are `Honor`."""

    node_selector: tuple[tuple[str, str], ...] = ()  # pairs of a label and its value
    node_terms: tuple[NodeSelectorTerm, ...] | None = None  # required node affinity; None where there is none
    tolerations: tuple[Toleration, ...] | None = None  # None where taints do not matter

    def admits(self, node: Node) -> bool:
        """Return whether the constraint counts the node; a cordoned node is counted."""
        return (
            all(node.labels.get(key) == value for key, value in self.node_selector)
            and (self.node_terms is None or any_term_matches(self.node_terms, node.labels, node.name))
            and (self.tolerations is None or untolerated(self.tolerations, node.taints) is None)
        )


class Spread(msgspec.Struct, frozen=True, gc=False):
    """A constraint as it applies to a pod; pods with equal ones are balanced together."""

    topology_key: str
    max_skew: int
    selector: LabelSelector
    restriction: Restriction
    min_domains: int = 1


def spreads(pods: Iterable[Pod], when_unsatisfiable: Collection[str]) -> list[Spread]:
    """Return the different constraints of these kinds, in the order in which the pods declare them.

    A constraint without a selector is left out, since it matches no pod.
    """
    found: dict[Spread, None] = {}
    seen: set[tuple[int, int]] = set()
    for pod in pods:
        # Replicas share spec and labels, which the pods keep alive.
        look = (id(pod.spec), id(pod.labels))
        if pod.spec.spread and look not in seen:
            seen.add(look)
            kept = (each for each in pod.spec.spread if each.when_unsatisfiable in when_unsatisfiable)
            found.update((_spread(each, each.selector, pod), None) for each in kept if each.selector is not None)
    return list(found)


def _spread(constraint: SpreadConstraint, selector: LabelSelector, pod: Pod) -> Spread:
    by_affinity, by_taints = constraint.node_affinity_policy == "Honor", constraint.node_taints_policy == "Honor"
    return Spread(
        constraint.topology_key,
        constraint.max_skew,
        selector.narrowed(pod.labels, constraint.match_label_keys),
        Restriction(
            tuple(sorted((pod.spec.node_selector or {}).items())) if by_affinity else (),
            pod.spec.node_terms if by_affinity else None,
            pod.spec.tolerations if by_taints else None,
        ),
        constraint.min_domains or 1,
    )


@dataclass(frozen=True, slots=True)
class SpreadDomain:
    """A value of the topology key."""

    value: str
    nodes: Sequence[Node] = ()  # its nodes that the constraint counts
    pods: Sequence[Pod] = ()  # the pods counted on its nodes, also on nodes that the constraint does not count


class DomainMove(NamedTuple):
    """How many pods to move from one domain to another; both are positions in the sequence of sizes."""

    source: int
    target: int
    number: int


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of one constraint, with the pods it counts."""

    spread: Spread
    sorted: Sequence[SpreadDomain]  # the domains, the smallest first, equal ones by value
    available: int  # the number of domains that have a counted node

    def moves(self) -> list[DomainMove]:
        """Return the moves that bring the domains within the skew; see `moves`."""
        return list(moves([len(domain.pods) for domain in self.sorted], self.spread.max_skew))

    def below_average(self) -> list[Node]:
        """Return the nodes of the domains that have fewer pods than the average domain: where pods should go."""
        _, high = _average([len(domain.pods) for domain in self.sorted])
        return [node for domain in self.sorted if len(domain.pods) < high for node in domain.nodes]


class Topology:
    """Finds the domains of constraints on the nodes of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._empty: dict[tuple[str, Restriction], dict[str, SpreadDomain]] = {}

    def of_pods(self, pods: Sequence[Pod], when_unsatisfiable: Collection[str]) -> Iterator[Domains]:
        """Yield the domains of each constraint of these kinds that the pods declare, with these pods counted."""
        labelled = of_pods(pods)
        for spread in spreads(pods, when_unsatisfiable):
            found = self.domains(spread, labelled.matching(spread.selector))
            yield Domains(spread, found, len(self.empty(spread)))

    def empty(self, spread: Spread) -> Mapping[str, SpreadDomain]:
        """Return the domains of the nodes that the constraint counts, without pods, in order of value."""
        key = (spread.topology_key, spread.restriction)
        if key not in self._empty:
            found = defaultdict(list)
            for node in self._cluster.nodes:
                value = node.labels.get(spread.topology_key)
                if value is not None and spread.restriction.admits(node):
                    found[value].append(node)
            self._empty[key] = {value: SpreadDomain(value, nodes) for value, nodes in sorted(found.items())}
        return self._empty[key]

    def domains(self, spread: Spread, pods: Iterable[Pod]) -> list[SpreadDomain]:
        """Return the domains of a constraint, with the pods it counts: the smallest first, equal ones by value.

        A pod on a node without the topology label is left out; one on a node that is not counted still makes a domain
        (the descheduler's rule).
        """
        counted = defaultdict(list)
        for pod in pods:
            node = self._cluster.node(pod.node)
            value = node.labels.get(spread.topology_key) if node else None
            if value is not None:
                counted[value].append(pod)
        empty = self.empty(spread)
        # With a domain for each node most are empty, and those are sorted already.
        rest = [domain for value, domain in empty.items() if value not in counted]
        taken = [SpreadDomain(each, empty[each].nodes if each in empty else (), counted[each]) for each in counted]
        return rest + sorted(taken, key=lambda each: (len(each.pods), each.value))


def moves(sizes: Sequence[int], max_skew: int) -> Iterator[DomainMove]:
    """Yield the moves that bring domains of these ascending sizes within the skew: largest to smallest, inwards.

    No domain shrinks below the average rounded down, or grows above the average rounded up.  For example, with sizes 1,
    2, 6 and a maximum skew of 1, two pods move from the third domain to the first, then one from the third to the
    second.
    """
    now = list(sizes)
    if not now or now[-1] - now[0] <= max_skew:
        return
    low, high = _average(sizes)
    target, source = 0, len(now) - 1
    while target < source:
        if now[source] <= low:
            source -= 1
        excess = now[source] - now[target] - max_skew
        number = min(now[source] - low, high - now[target], (excess + 1) // 2)
        if excess <= 0 or number <= 0:
            target += 1
            continue
        yield DomainMove(source, target, number)
        now[source] -= number
        now[target] += number


def _average(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the average size, rounded down and rounded up."""
    total, number = sum(sizes), len(sizes)
    return total // number, -(-total // number)
