"""RemovePodsViolatingTopologySpreadConstraint, by the facts of the descheduler's end-to-end test."""

import pytest

from tests.e2e.acts import by_node, uids
from tests.e2e.api import Object
from tests.e2e.builders import ZONE, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy

SHARED = {"test": "spread"}


@pytest.mark.parametrize(
    ("constraint", "evicted"),
    [
        pytest.param({"whenUnsatisfiable": "DoNotSchedule"}, 1, id="hard"),
        pytest.param({"whenUnsatisfiable": "ScheduleAnyway"}, 1, id="soft"),
        pytest.param({"whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor"}, 1, id="taints honoured"),
        pytest.param({"whenUnsatisfiable": "DoNotSchedule", "nodeAffinityPolicy": "Ignore"}, 1, id="affinity ignored"),
        pytest.param(
            {"whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["pod-template-hash"]}, 0, id="own pods only"
        ),
    ],
)
def test_two_pods_too_many_in_one_zone(
    controlplane: ControlPlane, namespace: Namespace, program: Program, constraint: Object, evicted: int
) -> None:
    """4 replicas spread over two zones and 2 more pods in one of them: one goes, and the skew is within 1."""
    spread = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": {"matchLabels": SHARED}, **constraint}
    namespace.create(node("a", zone="local-a"), node("b", zone="local-b"))
    namespace.create(deployment("web", replicas=4, cpu="100m", labels={"app": "web", **SHARED}, spread=[spread]))
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 2, "b": 2}
    violators = deployment(
        "violator", replicas=2, labels={"app": "violator", **SHARED}, node_selector={ZONE: "local-a"}
    )
    namespace.create(violators)
    before = uids([*namespace.wait_ready(2, "violator"), *namespace.pods("web")])

    args = {"constraints": [constraint["whenUnsatisfiable"]], "namespaces": {"include": [namespace.name]}}
    outcome = program.run(policy({"RemovePodsViolatingTopologySpreadConstraint": args}))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted_uids()) == evicted
    after = namespace.wait_ready(6)
    assert before - uids(after) == set(outcome.evicted_uids())
    counts = by_node(after)
    if evicted:
        assert abs(counts["a"] - counts["b"]) <= 1
    else:
        assert counts == {"a": 4, "b": 2}
