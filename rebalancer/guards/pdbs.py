"""PodDisruptionBudgets (PDBs): what each still allows in this cycle."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from rebalancer.cluster.pdb import DisruptionBudget
from rebalancer.cluster.pod import Pod
from rebalancer.eviction.verdict import Refused
from rebalancer.guards.protections import covers


class DisruptionBudgets:
    """The PDBs, counted down by the API server's own rules as pods are granted.

    Source: the Kubernetes documentation (Specifying a Disruption Budget; API-initiated eviction).
    """

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._budgets: defaultdict[str, list[DisruptionBudget]] = defaultdict(list)
        for budget in budgets:
            self._budgets[budget.namespace].append(budget)
        self._selecting: dict[tuple[str, int], list[DisruptionBudget]] = {}
        self._spent: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return why a PDB forbids the eviction, or None."""
        covering = self._covering(pod)
        if len(covering) > 1:
            names = ", ".join(sorted(budget.name for budget in covering))
            return Refused("PDB", f"more than one PDB selects it ({names}), which the API server refuses")
        return next(filter(None, (self._exhausted(budget, pod) for budget in covering)), None)

    def spend(self, pod: Pod, count: int = 1) -> None:
        """Count a granted pod against its PDB; with -1 take that back."""
        for budget in self._covering(pod):
            if not _free_of_charge(budget, pod):
                self._spent[budget.namespace, budget.name] += count

    def select(self, pod: Pod) -> bool:
        """Tell whether some PDB selects the pod, whatever it allows."""
        return any(covers(budget, pod) for budget in self._budgets.get(pod.namespace, ()))

    def _covering(self, pod: Pod) -> list[DisruptionBudget]:
        if pod.phase in ("Pending", "Succeeded", "Failed") or pod.terminating:
            return []
        # Replicas share their labels, and the pods keep them alive: an id stands for one set of labels.
        key = (pod.namespace, id(pod.labels))
        known = self._selecting.get(key)
        if known is None:
            known = [budget for budget in self._budgets.get(pod.namespace, ()) if covers(budget, pod)]
            self._selecting[key] = known
        return known

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
