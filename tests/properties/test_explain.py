"""What `explain` says of a pod agrees with the run, for every pod of random clusters."""

from hypothesis import given

from rebalancer.engine.cycle import ProfilePlan
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.document import Finished, document
from rebalancer.report.words import text
from rebalancer.run.explain import explained
from strategies.low_node_utilization import LowNodeUtilization
from strategies.pod_life_time import PodLifeTime
from tests import make
from tests.properties.measured_clusters import scenes

EVICTOR = {"minReplicas": 2, "nodeFit": True}


@given(scenes())
def test_a_pod_goes_exactly_if_explain_says_so_and_for_the_same_cause(scene):
    """Of a pod that filters hold, the first cause is the report's; one that goes is held by none at the beginning."""
    strategies = (PodLifeTime(PodLifeTime.Args.model_validate({"maxPodLifeTimeSeconds": 1500})),)
    balance = (LowNodeUtilization(LowNodeUtilization.Args.model_validate(scene.args)),)
    after = scene.cluster()
    ledger = make.decide(after, *strategies, *balance, evictor=EVICTOR)
    report = document(Finished(ledger, after, True, {"file": "f"}, "newest"))
    plan = ProfilePlan("test", DefaultEvictorArgs.model_validate(EVICTOR), strategies, balance)
    before = scene.cluster()
    gone = {each.pod.key for each in ledger.evictions}
    filters = {each.pod.key: text(each.verdict.cause) for each in ledger.refusals if each.strategy == "PodLifeTime"}

    for pod in scene.pods:
        told = explained(pod, before, [plan], report)
        held = told["profiles"][0]["heldBy"]
        assert told["goes"] is (pod.key in gone)
        if pod.key in filters and held:
            assert held[0] == filters[pod.key]
        view = told["scheduler"]
        assert set(view["lands"]) <= {each["node"] for each in view["scores"]} or view["unknown"] or not held
