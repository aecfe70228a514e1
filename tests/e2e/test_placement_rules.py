"""Pods whose node no longer suits them, by anti-affinity, affinity, taints or their like, move to one that does."""

import pytest

from tests.e2e.acts import by_node, cordon, names, set_labels, set_taints, uids
from tests.e2e.api import Object
from tests.e2e.builders import HOSTNAME, deployment, node, taint
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def strategy(name: str, namespace: Namespace, **args: object) -> Object:
    return policy({name: {"namespaces": {"include": [namespace.name]}, **args}}, {"nodeFit": True})


def test_pods_that_dislike_a_neighbour_go(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """Pods that must not be with a pod of a label go when a neighbour gets it; that one stays where it is."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"noisy": "yes"}}}
    namespace.create(node("a"), node("b"))
    cordon(controlplane.api, "b")
    namespace.create(deployment("web", replicas=3, affinity={"podAntiAffinity": {REQUIRED: [term]}}))
    noisy, *quiet = namespace.wait_ready(3, "web")
    change = {"metadata": {"labels": {"noisy": "yes"}}}
    controlplane.api.patch("Pod", noisy["metadata"]["name"], namespace.name, change)
    cordon(controlplane.api, "b", on=False)

    outcome = program.run(strategy("RemovePodsViolatingInterPodAntiAffinity", namespace))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == uids(quiet)
    after = namespace.wait_ready(3, "web")
    assert noisy["metadata"]["name"] in names(after)
    assert by_node(after) == {"a": 1, "b": 2}


@pytest.mark.parametrize("kind", [REQUIRED, PREFERRED])
def test_pods_follow_the_labels_of_nodes(
    controlplane: ControlPlane, namespace: Namespace, program: Program, kind: str
) -> None:
    """When the label that pods require, or prefer, moves to another node, the pods move after it."""
    namespace.create(node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "hdd"}))
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    wanted = {REQUIRED: {"nodeSelectorTerms": [term]}, PREFERRED: [{"weight": 100, "preference": term}]}
    namespace.create(deployment("db", replicas=2, affinity={"nodeAffinity": {kind: wanted[kind]}}))
    before = namespace.wait_ready(2, "db")
    assert by_node(before) == {"a": 2}
    set_labels(controlplane.api, "a", disk="hdd")
    set_labels(controlplane.api, "b", disk="ssd")

    outcome = program.run(strategy("RemovePodsViolatingNodeAffinity", namespace, nodeAffinityType=[kind]))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == uids(before)
    assert by_node(namespace.wait_ready(2, "db")) == {"b": 2}


def test_pods_leave_a_node_that_was_tainted(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """Pods that do not tolerate a new taint of their node move to another node; those that do stay."""
    namespace.create(node("a"), node("b"))
    cordon(controlplane.api, "b")
    tolerant = {"key": "dedicated", "operator": "Exists"}
    namespace.create(deployment("web", replicas=2), deployment("batch", tolerations=[tolerant]))
    before = namespace.wait_ready(2, "web")
    (stays,) = namespace.wait_ready(1, "batch")
    cordon(controlplane.api, "b", on=False)
    set_taints(controlplane.api, "a", taint("dedicated", "batch"))

    outcome = program.run(strategy("RemovePodsViolatingNodeTaints", namespace))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == uids(before)
    assert by_node(namespace.wait_ready(2, "web")) == {"b": 2}
    assert uids(namespace.pods("batch")) == uids([stays])


def test_replicas_are_spread(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """After the scheduler has placed what was evicted each node has its share, and nothing is left to do."""
    namespace.create(node("a"), node("b"))
    cordon(controlplane.api, "b")
    namespace.create(deployment("web", replicas=4, cpu="500m"))
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 4}
    cordon(controlplane.api, "b", on=False)

    outcome = program.run(strategy("RemoveDuplicates", namespace))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 2, "b": 2}
    assert program.dry_run(strategy("RemoveDuplicates", namespace)).evicted() == []
