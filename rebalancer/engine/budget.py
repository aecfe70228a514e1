"""What a cycle may spend: limits on evictions per node, namespace and cycle, and the PDBs."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.engine.protections import covers
from rebalancer.model.objects import DisruptionBudget, Pod
from rebalancer.model.verdict import Refused

TOTAL_LIMIT = "TotalLimit"


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

    def spend(self, pod: Pod) -> None:
        """Count an eviction."""
        self._total += 1
        self._namespaces[pod.namespace] += 1
        if pod.node:
            self._nodes[pod.node] += 1


class DisruptionBudgets:
    """The PDBs, counted down by the API server's own rules as pods are granted.

    Source: the Kubernetes documentation (Specifying a Disruption Budget; API-initiated eviction).
    """

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._budgets: defaultdict[str, list[DisruptionBudget]] = defaultdict(list)
        for budget in budgets:
            self._budgets[budget.namespace].append(budget)
        self._spent: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return why a PDB forbids the eviction, or None."""
        covering = self._covering(pod)
        if len(covering) > 1:
            names = ", ".join(sorted(budget.name for budget in covering))
            return Refused("PDB", f"more than one PDB selects it ({names}), which the API server refuses")
        return next(filter(None, (self._exhausted(budget, pod) for budget in covering)), None)

    def spend(self, pod: Pod) -> None:
        """Count a granted pod against its PDB."""
        for budget in self._covering(pod):
            if not _free_of_charge(budget, pod):
                self._spent[budget.namespace, budget.name] += 1

    def _covering(self, pod: Pod) -> list[DisruptionBudget]:
        if pod.phase in ("Pending", "Succeeded", "Failed") or pod.terminating:
            return []
        return [budget for budget in self._budgets.get(pod.namespace, ()) if covers(budget, pod)]

    def _exhausted(self, budget: DisruptionBudget, pod: Pod) -> Refused | None:
        if _free_of_charge(budget, pod):
            return None
        if not budget.observed:
            return Refused("PDB", f"PDB {budget.name} has changed and its status does not show it yet")
        left = budget.disruptions_allowed - self._spent[budget.namespace, budget.name]
        if left > 0:
            return None
        return Refused("PDB", f"PDB {budget.name} allows none of its {budget.disruptions_allowed} disruptions any more")


def _free_of_charge(budget: DisruptionBudget, pod: Pod) -> bool:
    """Tell whether the PDB lets a pod that is not ready go without counting it."""
    if pod.ready:
        return False
    if budget.unhealthy_policy == "AlwaysAllow":
        return True
    return budget.current_healthy >= budget.desired_healthy > 0
