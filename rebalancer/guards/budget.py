"""What a cycle may spend: limits on evictions per node, namespace and cycle, the PDBs, and shares of owners."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from rebalancer.cluster.pdb import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.cluster.pod import Owner, Pod
from rebalancer.eviction.verdict import Refused
from rebalancer.guards.protections import covers, surely_covers

TOTAL_LIMIT = "TotalLimit"
_PARTS = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """The most evictions of one cycle; None is no limit, 0 forbids all."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None

    def __bool__(self) -> bool:
        return (self.per_node, self.per_namespace, self.total) != (None, None, None)


class LimitCounter:
    """Evictions of this cycle against the limits, over all profiles and strategies."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._total = 0
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return which limit one more eviction would exceed: total, then node, then namespace."""
        limits = self._limits
        if limits.total is not None and self._total >= limits.total:
            return Refused(TOTAL_LIMIT, f"{self._total} of {limits.total} evictions of this cycle are used")
        node = self._nodes[pod.node]
        if pod.node and limits.per_node is not None and node >= limits.per_node:
            return Refused("NodeLimit", f"{node} of {limits.per_node} evictions from {pod.node} are used")
        namespace = self._namespaces[pod.namespace]
        if limits.per_namespace is not None and namespace >= limits.per_namespace:
            used = f"{namespace} of {limits.per_namespace} evictions"
            return Refused("NamespaceLimit", f"{used} in namespace {pod.namespace} are used")
        return None

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count an eviction; with -1 take that back."""
        self._total += count
        self._namespaces[pod.namespace] += count
        if pod.node:
            self._nodes[pod.node] += count


class DisruptionBudgets:
    """The PDBs, counted down by the API server's own rules as pods are granted.

    The server takes an eviction off `disruptionsAllowed` and writes the pod into `disruptedPods` in one step.  Until
    the pod is seen to go, the number may or may not have been worked out anew without it; so the pods of such a PDB
    are counted here, and the lower number holds.  In this way none counts twice, and none not at all.

    Source: the Kubernetes documentation (Specifying a Disruption Budget; API-initiated eviction; the API reference of
    PodDisruptionBudgetStatus).

    Args:
        budgets: all PDBs.
        pods: all pods as the cycle begins.
    """

    def __init__(self, budgets: Iterable[DisruptionBudget], pods: Iterable[Pod] = ()) -> None:
        self._budgets: defaultdict[str, list[DisruptionBudget]] = defaultdict(list)
        for budget in budgets:
            self._budgets[budget.namespace].append(budget)
        #: By PDB that has disrupted pods, how many of its pods stand: ready, not terminating, not disrupted.
        self._standing: Counter[tuple[str, str]] = Counter()
        for pod in pods if any(each.disrupted for each in self._all()) else ():
            self._count_standing(pod)
        self._selecting: dict[tuple[str, int], list[DisruptionBudget]] = {}
        self._spent: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return why a PDB forbids the eviction, or None."""
        covering = self._covering(pod)
        if unread := next((budget for budget in covering if budget.problem), None):
            return Refused("PDB", f"PDB {unread.name} could not be read, so it allows nothing: {unread.problem}")
        if len(covering) > 1:
            names = ", ".join(sorted(budget.name for budget in covering))
            return Refused("PDB", f"more than one PDB selects it ({names}), which the API server refuses")
        return next(filter(None, (self._exhausted(budget, pod) for budget in covering)), None)

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count a granted pod against its PDB; with -1 take that back."""
        for budget in self._covering(pod):
            if not self._free_of_charge(budget, pod):
                self._spent[budget.namespace, budget.name] += count

    def select(self, pod: Pod) -> bool:
        """Tell whether some PDB that could be read selects the pod, whatever it allows."""
        return any(surely_covers(budget, pod) for budget in self._budgets.get(pod.namespace, ()))

    def _covering(self, pod: Pod) -> list[DisruptionBudget]:
        if pod.phase in ("Pending", "Succeeded", "Failed") or pod.terminating:
            return []
        # Replicas share their labels, and the pods keep them alive: an id stands for one set of labels.
        key = (pod.namespace, id(pod.labels))
        known = self._selecting.get(key)
        if known is None:
            known = [budget for budget in self._of(pod.namespace) if covers(budget, pod)]
            self._selecting[key] = known
        return known

    def _exhausted(self, budget: DisruptionBudget, pod: Pod) -> Refused | None:
        if pod.name in budget.disrupted:
            return Refused("PDB", f"PDB {budget.name} counts it as disrupted: its eviction has been granted before")
        if self._free_of_charge(budget, pod):
            return None
        if not budget.observed:
            return Refused("PDB", f"PDB {budget.name} has changed and its status does not show it yet")
        allowed = self._allowed(budget)
        if allowed > self._spent[budget.namespace, budget.name]:
            return None
        return Refused("PDB", f"PDB {budget.name} allows none of its {allowed} disruptions any more")

    def _allowed(self, budget: DisruptionBudget) -> int:
        if not budget.disrupted:
            return budget.disruptions_allowed
        spare = self._standing[budget.namespace, budget.name] - budget.desired_healthy
        return min(budget.disruptions_allowed, max(spare, 0))

    def _free_of_charge(self, budget: DisruptionBudget, pod: Pod) -> bool:
        """Tell whether the PDB lets a pod that is not ready go without counting it."""
        if pod.ready:
            return False
        if budget.unhealthy_policy == "AlwaysAllow":
            return True
        healthy = budget.current_healthy
        if budget.disrupted:
            healthy = min(healthy, self._standing[budget.namespace, budget.name])
        return healthy >= budget.desired_healthy > 0

    def _all(self) -> Iterable[DisruptionBudget]:
        return chain.from_iterable(self._budgets.values())

    def _of(self, namespace: str) -> Iterable[DisruptionBudget]:
        return chain(self._budgets.get(namespace, ()), self._budgets.get(EVERY_NAMESPACE, ()))

    def _count_standing(self, pod: Pod) -> None:
        if pod.ready and not pod.terminating:
            self._standing.update(
                (budget.namespace, budget.name)
                for budget in self._budgets.get(pod.namespace, ())
                if budget.disrupted and pod.name not in budget.disrupted and covers(budget, pod)
            )


class OwnerShares:
    """How many pods each owner has lost in this cycle, of those it had at its beginning.

    Args:
        pods: all pods as the cycle began; those that are terminating or have ended are none that an owner has.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._had = Counter(owner for pod in pods if pod.active and not pod.terminating and (owner := _owner(pod)))
        self._lost: Counter[tuple[str, Owner]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return a refusal if the pod's owner has lost a quarter of its pods, or one if it has fewer than eight."""
        owner = _owner(pod)
        if owner is None or self._lost[owner] < max(1, self._had[owner] // _PARTS):
            return None
        name = f"{owner[1].kind} {owner[1].name}"
        lost = f"has lost {self._lost[owner]} of {self._had[owner]} pods in this cycle"
        return Refused("OwnerShare", f"{name} {lost}, and without a PDB a quarter is the most")

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count a granted pod; with -1 take that back."""
        if owner := _owner(pod):
            self._lost[owner] += count


def _owner(pod: Pod) -> tuple[str, Owner] | None:
    return (pod.namespace, pod.controller) if pod.controller else None
