"""A protection that is spelled wrongly still protects: objects with wrong values, through reading and deciding."""

import json
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.errors import UsageError
from rebalancer.kube.wire.collect import Collection, add_document
from rebalancer.scheduling.eligibility import EligibleNodes
from tests.attack.protected_objects import MISSING, PROTECTIONS, WRONG, Document, Protection, at, paths, pod, spoiled
from tests.attack.seeds import seeds
from tests.functional.objects import node as plain_node
from tests.make import NOW, decide, evicted
from tests.unit.engine.stand_ins import Greedy, Polite
from tests.unit.kube.wire.documents import page

attack = settings(max_examples=len(seeds(20)), derandomize=True, database=None)


def node(name):
    made = plain_node(name, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    more = {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "nodeInfo": {"kubeletVersion": "v1.35.0"}}
    parts = {"spec": {"unschedulable": False, **made["spec"]}, "status": {**made["status"], **more}}
    return {"metadata": made["metadata"], **parts}


def other_pod():
    """A replica that nothing protects, and that no PDB selects."""
    return pod(name="other", uid="u-other", labels={"app": "other"})


def live(objects):
    collection = Collection()
    for kind, items in objects.items():
        collector = collection.collector(kind)
        assert collector.add_page(page(items, kind)) == ""
        collection.replace(kind, collector)
    return Cluster(collection.snapshot(NOW))


def offline(objects):
    """Read the objects as a file's one list of objects, each with its kind."""
    items = [
        {"kind": kind, **each} if isinstance(each, dict) else each for kind, all_ in objects.items() for each in all_
    ]
    collection = Collection()
    add_document(collection, json.dumps({"kind": "List", "items": items}).encode())
    return Cluster(collection.snapshot(NOW))


def everything(protection, changed):
    """The protecting objects, some of them changed, in a cluster in which the pod could go."""
    objects: dict[str, list[Any]] = {kind: [each] for kind, each in {**protection.objects, **changed}.items()}
    objects["Pod"].append(other_pod())
    objects["Node"] = [node("n1"), node("n2")]
    objects.setdefault("PodDisruptionBudget", [])
    return objects


def gone(on, protection):
    """Names of the pods that go when everything is asked for; a run that ends with an error evicts nothing."""
    try:
        strategies = (Polite(),) if protection.asked_first else (Greedy(), Polite())
        ledger = decide(on, *strategies, evictor=protection.evictor)
    except UsageError:
        return []
    assert not any(run.error for run in ledger.runs)
    return evicted(ledger)


@pytest.mark.parametrize("name", PROTECTIONS)
def test_a_sound_object_protects(name):
    """The ground that the attack stands on."""
    protection = PROTECTIONS[name]

    for read in (live, offline):
        assert "a" not in gone(read(everything(protection, {})), protection)


def test_without_a_protection_the_pod_would_go():
    """Else the attack would show nothing."""
    protection = Protection({"Pod": pod()})

    for read in (live, offline):
        assert sorted(gone(read(everything(protection, {})), protection)) == ["a", "other"]


@pytest.mark.parametrize("name", PROTECTIONS)
@pytest.mark.parametrize("read", [live, offline])
@attack
@given(data=st.data())
def test_a_protection_with_a_wrong_value_still_protects(name, read, data):
    """Whatever stands where, up to two at a time: nothing raises, and the pod goes only if it well may."""
    protection = PROTECTIONS[name]
    changed: dict[str, Document] = {}
    lifted = False
    for _ in range(data.draw(st.sampled_from((1, 1, 2)))):
        kind = data.draw(st.sampled_from(sorted(protection.objects)))
        document = changed.get(kind, protection.objects[kind])
        places = list(paths(document))
        if not places:
            continue
        path, new = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(WRONG))
        note(f"{kind} {path}: {at(document, path)!r} -> {'(nothing)' if new is MISSING else repr(new)}")
        lifted = lifted or protection.is_lifted(kind, path, new)
        changed[kind] = spoiled(document, path, new)

    names = gone(read(everything(protection, changed)), protection)

    assert lifted or "a" not in names


@attack
@given(
    kind=st.sampled_from(("Node", "Pod", "Namespace", "PodDisruptionBudget", "PriorityClass", "PersistentVolumeClaim")),
    item=st.sampled_from([each for each in WRONG if each is not MISSING]),
    part=st.sampled_from(("", "metadata", "spec", "status")),
)
def test_what_is_no_object_at_all_takes_no_protection_away(kind, item, part):
    """Beside a sound PDB or instead of one; a list of such things is read all the same."""
    protection = PROTECTIONS["a pod under a PDB"]
    objects = everything(protection, {})
    objects.setdefault(kind, []).append({part: item} if part else item)

    assert "a" not in gone(live(objects), protection)


@attack
@given(data=st.data())
def test_a_node_with_a_wrong_value_takes_part_in_nothing(data):
    """It is either read in full, or neither source nor destination, and its pods stay."""
    sound = node("n1")
    path, new = data.draw(st.sampled_from(list(paths(sound)))), data.draw(st.sampled_from(WRONG))
    note(f"{path}: {new!r}")
    protection = Protection({"Pod": pod()})
    objects = everything(protection, {}) | {"Node": [spoiled(sound, path, new), node("n2"), node("n3")]}

    on = live(objects)
    unread = [each for each in on.snapshot.nodes if each.problem]
    names = gone(on, protection)

    if unread or not has_node(on, "n1"):
        assert not has_node(on, "n1", ready=True)
    if unread:
        assert "a" not in names
        assert len(on.snapshot.warnings) == 1
        eligible = on.index(EligibleNodes)
        assert all(eligible.why_not(each, one) for each in on.snapshot.pods for one in unread)


def has_node(on, name, *, ready=False):
    nodes: tuple[Node, ...] = on.ready_nodes if ready else on.snapshot.nodes
    return any(each.name == name for each in nodes)
