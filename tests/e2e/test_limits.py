"""Limits on the evictions of one run."""

from collections import Counter

import pytest

from tests.e2e.acts import by_node, uids, wait_older
from tests.e2e.api import Object
from tests.e2e.builders import deployment, node, pdb
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, everything_in


@pytest.mark.parametrize(
    ("limits", "by_node_limit", "evicted", "by"),
    [
        pytest.param({"maxNoOfPodsToEvictTotal": 3}, 6, 3, "TotalLimit", id="total"),
        pytest.param({"maxNoOfPodsToEvictPerNode": 2}, 2, 4, "NodeLimit", id="node"),
        pytest.param({"maxNoOfPodsToEvictPerNamespace": 3}, 6, 3, "NamespaceLimit", id="namespace"),
        pytest.param({"maxNoOfPodsToEvictPerNode": 2, "maxNoOfPodsToEvictTotal": 3}, 2, 3, "TotalLimit", id="both"),
        pytest.param({"maxNoOfPodsToEvictTotal": 0}, 0, 0, "TotalLimit", id="none at all"),
    ],
)
def test_limits(
    controlplane: ControlPlane,
    namespace: Namespace,
    program: Program,
    limits: Object,
    by_node_limit: int,
    evicted: int,
    by: str,
) -> None:
    """Of 6 pods on each of two nodes no more go than the limits say, and the others are refused by them."""
    namespace.create(node("a"), node("b"), deployment("one", replicas=6, node="a"), deployment("two", 6, node="b"))
    before = namespace.wait_ready(12)

    outcome = program.run(everything_in(namespace.name, **limits))

    assert outcome.exit_code == 0, outcome.stderr
    gone = uids(before) - uids(namespace.wait_ready(12))
    assert set(outcome.evicted_uids()) == gone
    assert len(gone) == evicted
    assert by in outcome.refused().values()
    counts = by_node(pod for pod in before if pod["metadata"]["uid"] in gone)
    assert all(count <= by_node_limit for count in counts.values())


def test_refusals_do_not_count(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """Pods that a PDB keeps use up no limit: with a limit of 2 the 2 pods go that may."""
    namespace.create(node("a"), node("b"), pdb("kept", min_available=4), deployment("kept", replicas=4))
    wait_older(namespace.wait_ready(4, "kept"), 1.1)  # the oldest go first, and ages are told in whole seconds
    namespace.wait_budget("kept", allowed=0)
    namespace.create(deployment("free", replicas=2))
    before = namespace.wait_ready(6)

    outcome = program.run(everything_in(namespace.name, maxNoOfPodsToEvictTotal=2))

    assert outcome.exit_code == 0, outcome.stderr
    assert Counter(outcome.refused().values()) == {"PDB": 4}
    gone = uids(before) - uids(namespace.wait_ready(6))
    assert gone == uids(pod for pod in before if pod["metadata"]["labels"]["app"] == "free")
