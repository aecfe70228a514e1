"""What a PDB holds is never granted, and nothing else is refused in its name."""

from hypothesis import given

from tests import make
from tests.properties.clusters import BUDGETS, NODES, pods
from tests.unit.engine.stand_ins import Greedy

LAX = {
    "podProtections": {
        "defaultDisabled": ["PodsWithLocalStorage", "SystemCriticalPods", "DaemonSetPods", "FailedBarePods"]
    }
}


class SlowServer:
    """The eviction subresource of the API server, spelled out."""

    def __init__(self, budgets):
        self.budgets = budgets
        self.left = {(budget.namespace, budget.name): budget.disruptions_allowed for budget in budgets}

    def accepts(self, pod):
        if pod.phase in ("Succeeded", "Failed", "Pending") or pod.terminating:
            return True
        covering = [budget for budget in self.budgets if budget.namespace == pod.namespace and selects(budget, pod)]
        if len(covering) != 1:
            return not covering
        return self.allows(covering[0], pod)

    def allows(self, budget, pod):
        if not pod.ready:
            if budget.unhealthy_policy == "AlwaysAllow":
                return True
            if budget.desired_healthy > 0 and budget.current_healthy >= budget.desired_healthy:
                return True
        if not budget.observed or self.left[budget.namespace, budget.name] <= 0:
            return False
        self.left[budget.namespace, budget.name] -= 1
        return True


def selects(budget, pod):
    if budget.selector is None:
        return False
    return all(pod.labels.get(each.key) in each.values for each in budget.selector.requirements)


@given(NODES, pods(), BUDGETS)
def test_the_server_would_have_accepted_every_grant_and_refused_every_refusal(nodes, crowd, budgets):
    ledger = make.decide(make.cluster(nodes, crowd, budgets=budgets), Greedy(), evictor=LAX)

    server = SlowServer(budgets)
    granted = {entry.pod.key for entry in ledger.evictions}
    causes = {entry.pod.key: entry.verdict.by for entry in ledger.refusals}
    asked = [pod for pod in crowd if pod.key in granted or causes.get(pod.key) == "PDB"]
    assert [pod.key in granted for pod in asked] == [server.accepts(pod) for pod in asked]
