"""PodDisruptionBudgets (PDBs): what each still allows in this cycle.

For each pod, in this order (PDBs do not count for pods that are pending, have ended or are terminating):

1. If a PDB that may select the pod could not be read, the pod is refused.  If more than one PDB selects it, it is
   refused as well: the API server would refuse it.
2. A pod in the PDB's `disruptedPods` is refused: the server has let it go already.
3. A pod that is not ready may go uncounted, if the PDB's policy is AlwaysAllow or enough others are healthy.
4. A PDB whose status is older than its spec refuses the pod.
5. Otherwise the PDB has to allow more disruptions than this cycle has spent of it.

An example: desiredHealthy is 3, and five pods are ready, so disruptionsAllowed is 2.  The server lets one go: now
disruptionsAllowed is 1 and `disruptedPods` names the pod.  Four others are ready, one more than 3: one more may go.  If
only three others are ready, none may go, although disruptionsAllowed still says 1.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rebalancer.cluster.label_index import SelectorIndex
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.eviction.causes import Code
from rebalancer.eviction.verdict import Refused, refused

#: The most PDBs of a pod that are named: each pod would name all of them.
_MOST_NAMED = 16


class DisruptionBudgets:
    """The PDBs, counted down by the API server's own rules as pods are granted.

    For an eviction the server lowers `disruptionsAllowed` and writes the pod into `disruptedPods` in one step.  Until
    the PDB's controller sees the pod go, it is not known whether the number was worked out again without the pod.  So
    the ready pods of such a PDB are counted here, and the lower of the two numbers holds.

    Source: the Kubernetes documentation (Specifying a Disruption Budget; API-initiated eviction; the API reference of
    PodDisruptionBudgetStatus).  The pods are all pods as the cycle begins.
    """

    def __init__(self, budgets: Iterable[DisruptionBudget], pods: Iterable[Pod] = ()) -> None:
        self._budgets = tuple(budgets)
        self._everything: defaultdict[str, list[int]] = defaultdict(list)
        self._selectors: defaultdict[str, SelectorIndex[int]] = defaultdict(SelectorIndex)
        for number, budget in enumerate(self._budgets):
            if budget.selector is not None and not budget.selector:
                self._everything[budget.namespace].append(number)
            elif budget.selector is not None:
                self._selectors[budget.namespace].add(budget.selector, number)
        self._everywhere = {place: [self._budgets[each] for each in found] for place, found in self._everything.items()}
        self._several: dict[int, Refused] = {}
        #: How many pods of a PDB stand: ready, not terminating, not disrupted.  Only asked where some are disrupted.
        self._standing: Counter[tuple[str, str]] = Counter()
        self._selecting: dict[tuple[str, int], tuple[list[DisruptionBudget], object]] = {}
        if any(each.disrupted for each in self._budgets):
            for pod in pods:
                if pod.ready and not pod.terminating:
                    counted = (each for each in self.selecting(pod) if pod.name not in each.disrupted)
                    self._standing.update((each.namespace, each.name) for each in counted)
        self._spent: Counter[tuple[str, str]] = Counter()

    def refusal(self, pod: Pod) -> Refused | None:
        """Return why a PDB forbids the eviction, or None."""
        covering = self._covering(pod)
        if len(covering) == 1 and not covering[0].problem:
            return self._exhausted(covering[0], pod)
        if not covering:
            return None
        # Where PDBs select everything, all pods have the same list of them; the index keeps it alive.
        known = self._several.get(id(covering))
        if known is None:
            known = self._several[id(covering)] = _several(covering)
        return known

    def spend(self, pod: Pod, count: int) -> None:
        """Count a granted pod against its PDB, with 1; with -1 take that back."""
        for budget in self._covering(pod):
            if not self._free_of_charge(budget, pod):
                self._spent[budget.namespace, budget.name] += count

    def select(self, pod: Pod) -> bool:
        """Return whether any PDB that could be read selects the pod, even one that allows nothing."""
        return any(not budget.problem for budget in self.selecting(pod))

    def names(self, pod: Pod) -> frozenset[str]:
        """Return the names of the PDBs that select the pod, or may select it."""
        return frozenset(budget.name for budget in self.selecting(pod))

    def _covering(self, pod: Pod) -> Sequence[DisruptionBudget]:
        return () if pod.phase in ("Pending", "Succeeded", "Failed") or pod.terminating else self.selecting(pod)

    def selecting(self, pod: Pod) -> Sequence[DisruptionBudget]:
        """Return the PDBs that select the pod, in their order; one that could not be read may select every pod."""
        # Replicas share their labels, and what is known keeps them alive: an id stands for one set of labels.
        key = (pod.namespace, id(pod.labels))
        known = self._selecting.get(key)
        if known is None:
            found = [self._matching_in(place, pod) for place in (pod.namespace, EVERY_NAMESPACE)]
            some = [each for each in found if each]
            known = self._selecting[key] = (some[0] if len(some) == 1 else [*found[0], *found[1]], pod.labels)
        return known[0]

    def _matching_in(self, place: str, pod: Pod) -> list[DisruptionBudget]:
        narrower = list(self._selectors[place].matching(pod.labels)) if place in self._selectors else []
        if not narrower:
            return self._everywhere.get(place, [])
        return [self._budgets[number] for number in sorted([*self._everything.get(place, ()), *narrower])]

    def _exhausted(self, budget: DisruptionBudget, pod: Pod) -> Refused | None:
        if pod.name in budget.disrupted:
            return refused(Code.PDB, pdb=budget.name, disrupted=True)
        if self._free_of_charge(budget, pod):
            return None
        if not budget.observed:
            return refused(Code.PDB, pdb=budget.name, observed=False)
        key, allowed = (budget.namespace, budget.name), budget.disruptions_allowed
        if budget.disrupted:
            allowed = min(allowed, max(self._standing[key] - budget.desired_healthy, 0))
        return None if allowed > self._spent[key] else refused(Code.PDB, pdb=budget.name, disruptions_allowed=allowed)

    def _free_of_charge(self, budget: DisruptionBudget, pod: Pod) -> bool:
        """Return whether the PDB lets a pod that is not ready go without counting it."""
        if pod.ready:
            return False
        if budget.unhealthy_policy == "AlwaysAllow":
            return True
        healthy = budget.current_healthy
        if budget.disrupted:
            healthy = min(healthy, self._standing[budget.namespace, budget.name])
        return healthy >= budget.desired_healthy > 0


def _several(covering: Sequence[DisruptionBudget]) -> Refused:
    if unread := next((budget for budget in covering if budget.problem), None):
        return refused(Code.PDB, pdb=unread.name, problem=unread.problem)
    names = sorted(budget.name for budget in covering)
    unnamed = len(names[_MOST_NAMED:])
    return refused(Code.PDB, pdbs=names[:_MOST_NAMED], **({"more": unnamed} if unnamed else {}))
