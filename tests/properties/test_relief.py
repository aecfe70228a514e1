"""Selection by relief against a slow and obvious model, and what it never does."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.eviction.steering import Steer
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from strategies.low_node_utilization import LowNodeUtilization, LowNodeUtilizationArgs
from tests import make
from tests.measured import RELIEF
from tests.models.relief import LowRelief
from tests.properties.measured_clusters import destination, scenes, verdicts


def decide(scene):
    return make.decide(scene.cluster(), LowNodeUtilization(LowNodeUtilizationArgs.model_validate(scene.args)))


def empty(scene):
    args = {"thresholds": {"cpu": 30, "memory": 30}, "metricsUtilization": RELIEF}
    return make.decide(scene.cluster(), HighNodeUtilization(HighNodeUtilizationArgs.model_validate(args)))


def moves(ledger):
    """The pods that went, with the node that each was charged to."""
    return [(str(each.pod), destination(each)) for each in ledger.evictions]


def moved(scene, ledger):
    """The same scene once the pods run, with the same usage, on the nodes that were charged."""
    places = {each.pod.key: destination(each) for each in ledger.evictions}
    pods = [msgspec.structs.replace(pod, node=places.get(pod.key, pod.node)) for pod in scene.pods]
    figures = {name: Counter(amounts) for name, amounts in scene.measured.nodes.items()}
    for each in ledger.evictions:
        amounts = scene.measured.pods[each.pod.key]
        figures[each.pod.node].subtract(amounts)
        figures[places[each.pod.key]].update(amounts)
    return replace(scene, pods=pods, measured=replace(scene.measured, nodes=figures, peaks=figures))


def settled(scene):
    """The same scene without a window or peaks and with fixed thresholds, of a source that knows pods."""
    measured = replace(scene.measured, peaks=scene.measured.nodes, pods=scene.measured.pods or {}, window=timedelta(0))
    return replace(scene, measured=measured, args={**scene.args, "useDeviationThresholds": False})


@given(scenes())
def test_the_same_pods_go_to_the_same_nodes_as_in_the_model(scene):
    """Whatever the cluster, the figures and the arguments, the program decides like the model."""
    assert moves(decide(scene)) == scene.model(LowRelief, cluster=scene.cluster()).evictions()


def pooled(scene, label, *, steered):
    """The verdicts with pools by a label."""
    metrics = {**scene.args["metricsUtilization"], "pools": {"label": label}}
    args = LowNodeUtilizationArgs.model_validate({**scene.args, "metricsUtilization": metrics})
    steer = Steer(1.5, ("a", "b")) if steered else None
    return make.decide(scene.cluster(), LowNodeUtilization(args), steer=steer)


@given(scenes(), st.booleans())
def test_no_pod_leaves_its_pool(scene, steered):
    """This holds whatever happens meanwhile, with one exception: unsteered replacements may come in another order.

    A single pool of all nodes changes nothing where thresholds are not distances from the mean.
    """
    disks = {node.name: node.labels.get("disk", "") for node in scene.nodes}
    evictions = pooled(scene, "disk", steered=steered).evictions
    for each in evictions:
        likely = each.destination.nodes if steered or len(evictions) == 1 else each.destination.nodes[:1]
        assert {disks[name] for name in likely} == {disks[each.pod.node]}
    fixed = replace(scene, args={**scene.args, "useDeviationThresholds": False})
    assert verdicts(pooled(fixed, "no-such-label", steered=False)) == verdicts(decide(fixed))


@given(scenes(), st.integers())
def test_the_order_of_what_was_read_is_no_matter(scene, seed):
    other = scene.shuffled(seed)

    for run in (decide, empty):
        assert verdicts(run(scene)) == verdicts(run(other))


@given(scenes(), st.sampled_from((decide, empty)))
def test_no_owner_loses_more_than_its_share(scene, run):
    """A quarter of its pods, and one in any case: none of the owners has a PDB."""
    owned = Counter((pod.namespace, pod.owners) for pod in scene.pods if pod.active and not pod.terminating)
    lost = Counter((each.pod.namespace, each.pod.owners) for each in run(scene).evictions)

    for owner, count in lost.items():
        assert count <= max(1, owned[owner] // 4)


@given(scenes())
def test_a_cured_cluster_rests(scene):
    """Once no node stays above target, and each pod runs where it was sent to, nothing more moves."""
    scene = settled(scene)
    ledger = decide(scene)

    if ledger.evictions and not ledger.warnings:
        assert decide(moved(scene, ledger)).evictions == []


@given(scenes())
def test_cycles_come_to_an_end(scene):
    """With each pod where it was sent to, no pod moves twice, and some cycle is the last."""
    scene, seen = settled(scene), Counter()
    while evictions := (ledger := decide(scene)).evictions:
        seen.update(each.pod.key for each in evictions)
        scene = moved(scene, ledger)

    assert set(seen.values()) <= {1}


@given(scenes())
def test_a_node_is_emptied_whole_or_not_at_all(scene):
    """Nothing stays on a node that loses a pod but what no autoscaler minds; a node left alone has one refusal."""
    ledger = empty(scene)
    lost = {each.pod.node: set() for each in ledger.evictions}
    for each in ledger.evictions:
        lost[each.pod.node].add(each.pod.key)

    for name, keys in lost.items():
        assert keys == {pod.key for pod in scene.pods if pod.node == name and pod.active and not pod.terminating}
    kept = [each.pod.node for each in ledger.refusals]
    assert len(kept) == len(set(kept))
    assert not set(kept) & set(lost)
    assert not {destination(each) for each in ledger.evictions} & (set(lost) | set(kept))


@given(scenes())
def test_no_destination_passes_its_ceiling(scene):
    """70 % at the peak, with all that was sent there."""
    peaks = {name: Counter(amounts) for name, amounts in scene.measured.peaks.items()}
    offered = {node.name: node.allocatable for node in scene.nodes}
    ledger = empty(scene)
    for each in ledger.evictions:
        peaks[destination(each)].update((scene.measured.pods or {}).get(each.pod.key, {}))

    for each in ledger.evictions:
        name = destination(each)
        assert all(peaks[name][resource] * 100 <= 70 * offered[name][resource] for resource in ("cpu", "memory"))
