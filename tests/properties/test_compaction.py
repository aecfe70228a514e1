"""Compaction against a slow and obvious model, and what it never does."""

from collections import Counter

from hypothesis import assume, given
from hypothesis import strategies as st

from rebalancer.cluster.measured import Measured
from rebalancer.eviction.steering import Steer
from strategies.high_node_utilization import HighNodeUtilization, HighNodeUtilizationArgs
from tests import make
from tests.measured import KEYS, PACKS
from tests.models.compaction import Compacting
from tests.properties.measured_clusters import destination, exact, sparse_scenes, verdicts


def decide(scene, *, packs=True, steer=None):
    strategy = HighNodeUtilization(HighNodeUtilizationArgs.model_validate(scene.args))
    return make.decide(scene.cluster(**({"scheduler_configuration": PACKS} if packs else {})), strategy, steer=steer)


def steered(scene):
    return decide(scene, packs=False, steer=Steer(1.5, KEYS))


def requested(scene):
    """The figures where requests decide."""
    names, active = ("cpu", "memory"), [pod for pod in scene.pods if pod.active]
    pods = {pod.key: {name: pod.spec.requests.get(name, 0) for name in names} for pod in active}
    nodes = {node.name: dict.fromkeys(names, 0) for node in scene.nodes}
    for pod in active:
        for name in names:
            nodes[pod.node][name] += pods[pod.key][name]
    return Measured(nodes, nodes, pods)


def ceilings(scene):
    given = scene.args.get("destinationThresholds", {})
    return dict.fromkeys(("cpu", "memory"), 70 if "metricsUtilization" in scene.args else 100) | given


def model(scene, *, packs):
    args, groups = scene.args, scene.args.get("nodeGroups", {"label": "", "keep": 0})
    by_requests = "metricsUtilization" not in args
    return scene.model(
        Compacting,
        requested(scene) if by_requests else scene.measured,
        ceilings(scene),
        keep_free=exact(args.get("keepFree", {})),
        label=groups["label"],
        keep_nodes=groups["keep"],
        packs=packs,
        by_requests=by_requests,
    )


@given(sparse_scenes(), st.booleans())
def test_the_same_pods_go_to_the_same_nodes_as_in_the_model(scene, packs):
    """Whatever the cluster, the figures and the arguments, with a scheduler that packs and with one that spreads."""
    ledger = decide(scene, packs=packs)

    assert [(str(each.pod), destination(each)) for each in ledger.evictions] == model(scene, packs=packs).emptied()


@given(sparse_scenes(), st.sampled_from((decide, steered)), st.integers())
def test_the_order_of_what_was_read_is_no_matter(scene, run, seed):
    other = scene.shuffled(seed)

    assert verdicts(run(scene)) == verdicts(run(other))


@given(sparse_scenes(), st.sampled_from((decide, steered)))
def test_a_node_is_emptied_whole_or_not_at_all(scene, run):
    """What stays is what no autoscaler minds; and no pod goes to a node that is, or was made, empty."""
    ledger = run(scene)
    lost: dict[str, set[object]] = {}
    for each in ledger.evictions:
        lost.setdefault(each.pod.node, set()).add(each.pod.key)

    occupied = {node.name: set() for node in scene.nodes}
    for pod in scene.pods:
        if pod.active and not pod.terminating:
            occupied[pod.node].add(pod.key)
    for name, keys in lost.items():
        assert keys == occupied[name]
    for each in ledger.evictions:
        # Steered, a replacement was seen on one node; else it may be on any of the likely ones.
        reached = each.destination.nodes[:1] if run is steered else each.destination.nodes
        assert not set(reached) & set(lost)
        assert all(occupied[name] for name in reached)


@given(sparse_scenes(), st.sampled_from((decide, steered)))
def test_what_is_protected_or_holds_its_node_keeps_it(scene, run):
    """Bare pods, local storage, annotated pods, annotated nodes, and nodes of no group where a label is named."""
    nodes = {node.name: node for node in scene.nodes}
    left = {each.pod.node for each in run(scene).evictions}

    for pod in scene.pods:
        if pod.node in left and pod.active and not pod.terminating:
            assert pod.owners
            assert not pod.spec.local_storage
            assert not pod.holding
    for name in left:
        assert not nodes[name].keeping
        assert "nodeGroups" not in scene.args or "group" in nodes[name].labels


@given(sparse_scenes())
def test_steering_brings_no_owners_pods_onto_one_node(scene):
    assume(scene.args.get("metricsUtilization", {}).get("scheduler") != "unknown")
    ledger = steered(scene)
    places = {each.pod.key: destination(each) for each in ledger.evictions}
    before, after = {}, {}
    for pod in scene.pods:
        if pod.active and not pod.terminating and pod.owners:
            owner = (pod.namespace, pod.owners)
            before.setdefault(owner, set()).add(pod.node)
            after.setdefault(owner, set()).add(places.get(pod.key, pod.node))

    assert all(len(after[owner]) > 1 for owner, nodes in before.items() if len(nodes) > 1)


@given(sparse_scenes(), st.sampled_from((decide, steered)))
def test_no_destination_passes_its_ceiling_or_what_it_has(scene, run):
    """By the peaks, or by requests; and by requests every node has room for what it gets."""
    offered = {node.name: node.allocatable for node in scene.nodes}
    figures = scene.measured if "metricsUtilization" in scene.args else requested(scene)
    peaks = {name: Counter(amounts) for name, amounts in figures.peaks.items()}
    asked = {name: Counter(amounts) for name, amounts in requested(scene).nodes.items()}
    ledger = run(scene)
    for each in ledger.evictions:
        peaks[destination(each)].update((figures.pods or {}).get(each.pod.key, {}))
        asked[destination(each)].update(each.pod.spec.requests)

    for name in {destination(each) for each in ledger.evictions}:
        for resource, ceiling in ceilings(scene).items():
            assert peaks[name][resource] * 100 <= ceiling * offered[name][resource]
            assert asked[name][resource] <= offered[name][resource]
