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

from rebalancer import api

Kind = Literal["DoNotSchedule", "ScheduleAnyway"]
_STUCK = api.Refused(api.Cause(api.Code.NODE_FIT, {"domains": "BelowAverage"}))


class RemovePodsViolatingTopologySpreadConstraintArgs(api.PodArgs):
    """Which constraints to even out."""

    constraints: tuple[Kind, ...] = api.Field(
        ("DoNotSchedule",), strict=False, description="Kinds of constraints: DoNotSchedule, ScheduleAnyway or both."
    )
    topology_balance_node_fit: bool = api.Field(True, description="Evict only pods that fit a node of a small domain.")

    @api.field_validator("constraints")
    @classmethod
    def _some(cls, constraints: tuple[Kind, ...]) -> tuple[Kind, ...]:
        return constraints or ("DoNotSchedule",)


class RemovePodsViolatingTopologySpreadConstraint(api.Balance[RemovePodsViolatingTopologySpreadConstraintArgs]):
    """Evict pods from domains that have too many."""

    name = "RemovePodsViolatingTopologySpreadConstraint"
    Args = RemovePodsViolatingTopologySpreadConstraintArgs
    example: ClassVar[Mapping[str, object]] = {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Choose for all constraints of all namespaces, then evict in the order of choice."""
        topology = api.Topology(cluster)
        chosen: dict[api.Pod, api.Cause] = {}
        for pods in self._pods_by_namespace(cluster, evict):
            for domains in topology.of_pods(pods, self.args.constraints):
                evict.count({"constraints": 1})
                self._warn(domains, pods[0].namespace, evict)
                for pod, because, fits in _choose(cluster, domains):
                    if fits or not self.args.topology_balance_node_fit:
                        chosen.setdefault(pod, because)
                    else:
                        evict.refuse(pod, because, _STUCK)
        evict.count({"crowded": len(chosen)})
        for pod, because in chosen.items():
            if evict.evictable(pod, because):
                evict(pod, because)

    def _pods_by_namespace(self, cluster: api.Cluster, evict: api.Evict) -> Iterator[list[api.Pod]]:
        """Yield the pods that count, of each namespace in which one declares a constraint that counts."""
        found: defaultdict[str, list[api.Pod]] = defaultdict(list)
        for node in cluster.nodes:
            for pod in cluster.active_pods_on(node):
                if self.args.selects(pod):
                    found[pod.namespace].append(pod)
        evict.count({"pods": sum(map(len, found.values())), "constraints": 0})
        for _, pods in sorted(found.items()):
            declared = any(each.when_unsatisfiable in self.args.constraints for pod in pods for each in pod.spec.spread)
            counted = [pod for pod in pods if not evict.filter_refusal(pod)] if declared else []
            if counted:
                yield counted

    def _warn(self, domains: api.Domains, namespace: str, evict: api.Evict) -> None:
        spread = domains.spread
        if domains.available < spread.min_domains:
            wanted = f"a spread over {spread.topology_key} wants at least {spread.min_domains} domains"
            evict.warn(f"namespace {namespace}: {wanted}, there are {domains.available}")


def _choose(cluster: api.Cluster, domains: api.Domains) -> Iterator[tuple[api.Pod, api.Cause, bool]]:
    """Yield the pods that should move, why, and whether they fit where they should go."""
    spread, planned = domains.spread, domains.moves()
    if not planned:
        return
    others = cluster.index(api.EligibleNodes).among(domains.below_average())
    leaving = {move.source: _in_order(domains.sorted[move.source].pods, others) for move in planned}
    for move in planned:
        source, target = domains.sorted[move.source], domains.sorted[move.target]
        sizes = [{"domain": each.value, "pods": len(each.pods)} for each in (source, target)]
        because = api.Cause(
            api.Code.UNEVEN_SPREAD,
            {"topology_key": spread.topology_key, "from": sizes[0], "to": sizes[1], "max_skew": spread.max_skew},
        )
        for pod, fits in islice(leaving[move.source], move.number):
            yield pod, because, fits


def _in_order(pods: Sequence[api.Pod], others: api.OtherNodes) -> Iterator[tuple[api.Pod, bool]]:
    """Yield the pods of a domain in the order in which they should leave, those that fit nowhere at the end."""
    stuck = []
    for pod in sorted(sorted(pods, key=lambda each: each.age_order, reverse=True), key=_cost):
        if others.any_for(pod):
            yield pod, True
        else:
            stuck.append(pod)
    yield from ((pod, False) for pod in stuck)


def _cost(pod: api.Pod) -> tuple[bool, bool, int]:
    spec = pod.spec
    return (spec.node_selector is not None or spec.node_affinity, spec.priority is not None, spec.priority or 0)
