"""A plan that is applied or explained: a run does what it says, and on a changed cluster never more."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.engine.cycle import ProfilePlan
from rebalancer.engine.evictor import Evictor
from rebalancer.eviction.steering import Steer
from rebalancer.policy.evictor import DefaultEvictorArgs
from rebalancer.report.document import Finished, document
from rebalancer.report.plan import PlannedMove
from rebalancer.report.words import text
from rebalancer.run.explain import explained
from rebalancer.run.planned import AsPlanned, AsPlannedArgs
from strategies.low_node_utilization import LowNodeUtilization
from strategies.pod_life_time import PodLifeTime
from strategies.remove_duplicates import RemoveDuplicates
from tests import make
from tests.measured import KEYS
from tests.properties.measured_clusters import scenes

EVICTOR = {"minReplicas": 2, "nodeFit": True}


def strategies(scene, seconds):
    kinds = (
        (PodLifeTime, {"maxPodLifeTimeSeconds": seconds}),
        (RemoveDuplicates, {}),
        (LowNodeUtilization, scene.args),
    )
    return [kind(kind.Args.model_validate(args)) for kind, args in kinds]


def went(ledger):
    return [(each.pod.uid, each.strategy, each.because, each.destination) for each in ledger.evictions]


@given(scenes(), st.sampled_from((100, 1500, 100_000)))
def test_on_an_unchanged_cluster_a_plan_does_what_a_run_does(scene, seconds):
    """The same pods for the same reasons to the same nodes, in the same order."""
    plan = make.decide(scene.cluster(), *strategies(scene, seconds), evictor=EVICTOR)

    only = {each.pod.uid for each in plan.evictions}
    assert went(make.decide(scene.cluster(), *strategies(scene, seconds), evictor=EVICTOR, only=only)) == went(plan)


@given(st.data(), scenes())
def test_a_steered_plan_is_steered_anew_with_its_pods_alone(data, scene):
    """Waves and destinations may differ; new candidates never join."""
    steered = {**scene.args, "metricsUtilization": {**scene.args["metricsUtilization"], "scheduler": "default"}}
    low = LowNodeUtilization(LowNodeUtilization.Args.model_validate(steered))
    plan = make.decide(scene.cluster(), low, evictor=EVICTOR, steer=Steer(1.5, KEYS))
    only = {each.pod.uid for each in plan.evictions}
    later = data.draw(changed(scene))

    ledger = make.decide(later.cluster(), low, evictor=EVICTOR, steer=Steer(1.5, KEYS), only=only)

    assert {each.pod.uid for each in ledger.evictions} <= only


@st.composite
def changed(draw, scene):
    """The same cluster some minutes later: pods gone, replaced, ending or protected, nodes cordoned, figures fallen."""
    pods = []
    for pod in scene.pods:
        change = draw(st.sampled_from([*["none"] * 8, "gone", "replaced", "ending", "protected", "labels"]))
        if change == "replaced":
            pods.append(msgspec.structs.replace(pod, uid=f"{pod.uid}-new"))
        elif change == "ending":
            pods.append(msgspec.structs.replace(pod, terminating=True))
        elif change == "protected":
            pods.append(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, priority=2_000_000_000)))
        elif change == "labels":
            pods.append(msgspec.structs.replace(pod, labels={"app": "z"}))
        elif change == "none":
            pods.append(pod)
    nodes = [
        msgspec.structs.replace(node, unschedulable=draw(st.sampled_from([*[node.unschedulable] * 7, True])))
        for node in scene.nodes
    ]
    share = draw(st.sampled_from((1.0, 1.0, 0.5)))
    measured = scene.measured
    figures = {
        name: {each: int(share * amount) for each, amount in amounts.items()}
        for name, amounts in measured.nodes.items()
    }
    return replace(scene, nodes=nodes, pods=pods, measured=replace(measured, nodes=figures))


@pytest.mark.parametrize("force", [False, True])
@given(st.data(), scenes(), st.sampled_from((100, 1500, 100_000)))
def test_on_a_changed_cluster_a_subset_of_the_plan_goes_and_nothing_protected(force, data, scene, seconds):
    """Also where the premises are forced: then only what strategies say of a pod is ignored."""
    plan = make.decide(scene.cluster(), *strategies(scene, seconds), evictor=EVICTOR)
    only = {each.pod.uid for each in plan.evictions}
    later = data.draw(changed(scene))
    run = strategies(later, seconds)
    if force:
        moves = tuple(planned(each) for each in plan.evictions)
        run.append(AsPlanned(AsPlannedArgs(moves=moves)))

    ledger = make.decide(later.cluster(), *run, evictor=EVICTOR, only=only)

    gone = [each.pod for each in ledger.evictions]
    assert {pod.uid for pod in gone} <= only
    evictor = Evictor(later.cluster(), DefaultEvictorArgs.model_validate(EVICTOR))
    assert not [pod for pod in gone if evictor.protection(pod)]
    if force:
        assert len(gone) == len({pod.uid for pod in gone})


def planned(entry):
    return move(entry.pod, entry.profile, entry.strategy)


def move(pod, profile="test", strategy="PodLifeTime"):
    names = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": pod.node}
    destination = {"nodes": ["gone"]}
    return PlannedMove(**names, profile=profile, strategy=strategy, reason="as planned", destination=destination)


def test_forced_premises_move_what_no_strategy_picks_any_more():
    """The pods are younger than their policy asks now; a PDB still holds one of them."""
    pods = [make.pod("free", age=500), make.pod("held", age=500, labels={"app": "held"})]
    strategy = PodLifeTime(PodLifeTime.Args.model_validate({"maxPodLifeTimeSeconds": 86_400}))
    forced, only = AsPlanned(AsPlannedArgs(moves=tuple(map(move, pods)))), {pod.uid for pod in pods}

    def ledger(*strategies):
        on = make.cluster([make.node("n1"), make.node("n2")], pods, budgets=(make.pdb("held", 0),))
        return make.decide(on, *strategies, only=only)

    assert make.evicted(ledger(strategy)) == []
    assert make.evicted(ledger(strategy, forced)) == ["free"]
    assert (
        ledger(strategy, forced).evictions[0].destination is None
    )  # where the plan saw its replacement, none may land
    assert make.refused(ledger(strategy, forced)) == {"held": "PDB"}


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
