"""What is protected, or what a PDB holds, is never granted, whatever a strategy asks for and an annotation says."""

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.policy.evictor import DefaultEvictorArgs
from tests import make
from tests.properties.crowds import BUDGETS, EVICTORS, NODES, pods
from tests.unit.engine.stand_ins import Greedy, Polite

STRATEGIES = st.lists(st.sampled_from((Greedy(), Greedy(2), Polite())), min_size=1, max_size=3)


@given(NODES, pods(), BUDGETS, EVICTORS, STRATEGIES)
def test_what_is_protected_does_not_go(nodes, crowd, budgets, evictor, strategies):
    """Each protection in force, read off the pod; the annotation lifts all but the absolute ones."""
    ledger = make.decide(make.cluster(nodes, crowd, budgets=budgets), *strategies, evictor=evictor)

    names = DefaultEvictorArgs.model_validate(evictor).protections()
    for pod in (entry.pod for entry in ledger.evictions):
        assert not any((pod.mirror, pod.static, pod.terminating, pod.problem))
        if pod.evict_annotation:
            continue
        assert not ("PodsWithLocalStorage" in names and pod.spec.local_storage)
        assert not ("SystemCriticalPods" in names and (pod.spec.priority or 0) >= 2_000_000_000)
        assert not ("DaemonSetPods" in names and any(owner.kind == "DaemonSet" for owner in pod.owners))
        assert pod.owners or ("FailedBarePods" not in names and pod.phase == "Failed")
        assert not ("PodsWithPVC" in names and pod.claims)
        assert not ("PodsWithResourceClaims" in names and pod.spec.resource_claims)
        assert not (evictor.get("noEvictionPolicy") == "Mandatory" and pod.prefer_no_eviction)
        assert not ("labelSelector" in evictor and pod.labels.get("app") != "x")
        assert not ("minPodAge" in evictor and pod.age(make.NOW).total_seconds() < 30)


@given(NODES, pods(), st.integers(2, 4), STRATEGIES)
def test_owners_keep_their_least_number_of_pods(nodes, crowd, minimum, strategies):
    """Unless they had fewer from the start; annotated pods are not counted on."""
    on = make.cluster(nodes, crowd)
    ledger = make.decide(on, *strategies, evictor={"minReplicas": minimum})

    before = {owner.uid for pod in crowd for owner in pod.owners}
    for uid in before:
        had = sum(any(owner.uid == uid for owner in pod.owners) for pod in crowd)
        taken = [entry.pod for entry in ledger.evictions if entry.pod.owners and entry.pod.owners[0].uid == uid]
        annotated = sum(pod.evict_annotation for pod in taken)
        assert on.siblings(uid) == had - len(taken)
        assert len(taken) - annotated <= max(had - minimum + 1, 0)


@given(NODES, pods(), BUDGETS, EVICTORS)
def test_every_pod_that_is_asked_for_is_granted_or_refused(nodes, crowd, budgets, evictor):
    ledger = make.decide(make.cluster(nodes, crowd, budgets=budgets), Polite(), evictor=evictor)

    answered = [entry.pod.key for entry in (*ledger.evictions, *ledger.refusals)]
    assert sorted(answered) == sorted(pod.key for pod in crowd)


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
