"""RemovePodsViolatingTopologySpreadConstraint: evict pods from crowded topology domains, as spread constraints ask.

Namespace by namespace, the constraints that evictable pods declare are evened out one by one.  A constraint with
skew greater than maxSkew moves pods from the largest domains to the smallest, no further than to the average.
`constraints` says which kinds count: DoNotSchedule (unless given otherwise), ScheduleAnyway or both.

- Only pods that the evictor's protections, `namespaces` and `labelSelector` let through are counted.
- A domain is a value of the topologyKey on nodes that the declaring pod selects (nodeAffinityPolicy, Honor unless
  given) and tolerates (nodeTaintsPolicy, Ignore unless given); cordoned nodes count.  matchLabelKeys narrows the
  selector by the declaring pod's labels.
- Of a domain those pods go first that have neither nodeSelector nor node affinity and that fit a node of a domain
  below the average; of these the ones without priority, then low priority before high, then the youngest.
- A pod that fits no such node stays, and no other goes in its place; topologyBalanceNodeFit: false evicts it all the
  same.

Constraints do not know of each other's moves; a pod that several want to move goes once.  Where minDomains asks for
more domains than there are, a warning says so; nothing is evicted for a domain that does not exist.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Literal

from rebalancer.api import (
    Balance,
    Cluster,
    Domain,
    Evict,
    Field,
    Homes,
    LabelIndex,
    Pod,
    PodArgs,
    Refused,
    Spread,
    Topology,
    below_average,
    field_validator,
    moves,
    spreads,
)

Kind = Literal["DoNotSchedule", "ScheduleAnyway"]
_STUCK = Refused("NodeFit", "fits no node of a domain below the average")


class RemovePodsViolatingTopologySpreadConstraintArgs(PodArgs):
    """Which constraints to even out."""

    constraints: tuple[Kind, ...] = Field(
        ("DoNotSchedule",), strict=False, description="Kinds of constraints: DoNotSchedule, ScheduleAnyway or both."
    )
    topology_balance_node_fit: bool = Field(True, description="Evict only pods that fit a node of a small domain.")

    @field_validator("constraints")
    @classmethod
    def _some(cls, constraints: tuple[Kind, ...]) -> tuple[Kind, ...]:
        return constraints or ("DoNotSchedule",)


class RemovePodsViolatingTopologySpreadConstraint(Balance[RemovePodsViolatingTopologySpreadConstraintArgs]):
    """Evict pods from domains that have too many."""

    name = "RemovePodsViolatingTopologySpreadConstraint"
    Args = RemovePodsViolatingTopologySpreadConstraintArgs
    example: ClassVar[Mapping[str, object]] = {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}

    def run(self, cluster: Cluster, evict: Evict) -> None:
        """Choose for all constraints of all namespaces, then evict in the order of choice."""
        topology = Topology(cluster)
        chosen: dict[Pod, str] = {}
        for pods in self._pods_by_namespace(cluster, evict):
            labelled = LabelIndex(pods)
            for spread in spreads(pods, self.args.constraints):
                domains = topology.domains(spread, labelled.matching(spread.selector))
                self._warn(spread, len(topology.empty(spread)), pods[0].namespace, evict)
                for pod, because, fits in _choose(cluster, spread, domains):
                    if fits or not self.args.topology_balance_node_fit:
                        chosen.setdefault(pod, because)
                    else:
                        evict.refuse(pod, because, _STUCK)
        for pod, because in chosen.items():
            if evict.evictable(pod, because):
                evict(pod, because)

    def _pods_by_namespace(self, cluster: Cluster, evict: Evict) -> Iterator[list[Pod]]:
        """Yield the pods that count, of each namespace in which one declares a constraint that counts."""
        found: defaultdict[str, list[Pod]] = defaultdict(list)
        for node in cluster.nodes:
            for pod in cluster.active_pods_on(node):
                if self.args.selects(pod):
                    found[pod.namespace].append(pod)
        for _, pods in sorted(found.items()):
            declared = any(each.when_unsatisfiable in self.args.constraints for pod in pods for each in pod.spec.spread)
            counted = [pod for pod in pods if evict.passes_filter(pod)] if declared else []
            if counted:
                yield counted

    def _warn(self, spread: Spread, number: int, namespace: str, evict: Evict) -> None:
        if number < spread.min_domains:
            wanted = f"a spread over {spread.topology_key} wants at least {spread.min_domains} domains"
            evict.warn(f"namespace {namespace}: {wanted}, there are {number}")


def _choose(cluster: Cluster, spread: Spread, domains: Sequence[Domain]) -> Iterator[tuple[Pod, str, bool]]:
    """Yield the pods that should move, why, and whether they fit where they should go."""
    planned = list(moves([len(domain.pods) for domain in domains], spread.max_skew))
    if not planned:
        return
    homes = Homes(cluster, below_average(domains))
    leaving = {move.source: _in_order(domains[move.source].pods, homes) for move in planned}
    for move in planned:
        source, target = domains[move.source], domains[move.target]
        sizes = f"{source.value} has {len(source.pods)}, {target.value} {len(target.pods)}"
        for pod, fits in islice(leaving[move.source], move.number):
            yield pod, f"{spread.topology_key}: {sizes}, maxSkew {spread.max_skew}", fits


def _in_order(pods: Sequence[Pod], homes: Homes) -> Iterator[tuple[Pod, bool]]:
    """Yield the pods of a domain in the order in which they should leave, those that fit nowhere at the end."""
    stuck = []
    for pod in sorted(sorted(pods, key=lambda each: each.age_order, reverse=True), key=_cost):
        if homes.takes(pod):
            yield pod, True
        else:
            stuck.append(pod)
    yield from ((pod, False) for pod in stuck)


def _cost(pod: Pod) -> tuple[bool, bool, int]:
    spec = pod.spec
    return (spec.node_selector is not None or spec.node_affinity, spec.priority is not None, spec.priority or 0)
