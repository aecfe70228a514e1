"""Which pods go first where not all may go."""

import pytest

from tests.e2e.acts import names
from tests.e2e.builders import Template, node, pod, priority_class, replicaset
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy

QOS: dict[str, Template] = {
    "best-effort": {},
    "burstable": {"cpu": "100m"},
    "guaranteed": {"cpu": "100m", "memory": "100Mi", "limits": True},
}
PREFER_NO_EVICTION = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}
CHEAPEST_FIRST = [
    f"{priority}-{qos}{suffix}" for priority in ("low", "high") for qos in QOS for suffix in ("", "-reluctant")
]


@pytest.mark.parametrize("allowed", [5, 12])
def test_cheapest_pods_go_first(
    controlplane: ControlPlane, namespace: Namespace, program: Program, allowed: int
) -> None:
    """Low priority before high, BestEffort before Burstable before Guaranteed, pods that would rather stay last."""
    classes = {name: f"{name}-{namespace.name}" for name in ("low", "high")}
    namespace.create(node("a", cpu="10"), node("b", cpu="10"), pod("filler", cpu="5", node="b"))
    namespace.create(priority_class(classes["low"], 10), priority_class(classes["high"], 1000))
    for name in reversed(CHEAPEST_FIRST):  # the other way round, so that age is not what they go by
        priority, _, rest = name.partition("-")
        template = Template(node="a", priority_class=classes[priority], **QOS[rest.removesuffix("-reluctant")])
        if rest.endswith("-reluctant"):
            template["annotations"] = PREFER_NO_EVICTION
        namespace.create(replicaset(name, **template))
    before = names(namespace.wait_ready(13))

    emptying = policy({"HighNodeUtilization": {"thresholds": {"cpu": 30}}}, maxNoOfPodsToEvictPerNode=allowed)
    outcome = program.run(emptying)

    assert outcome.exit_code == 0, outcome.stderr
    assert [name.rpartition("-")[0] for name in outcome.evicted()] == CHEAPEST_FIRST[:allowed]
    assert before - names(namespace.wait_ready(13)) == set(outcome.evicted())
