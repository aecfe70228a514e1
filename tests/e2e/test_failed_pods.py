"""RemoveFailedPods, by the facts of the descheduler's end-to-end test."""

import pytest

from tests.e2e.acts import set_failed, wait_older
from tests.e2e.api import Object
from tests.e2e.builders import replicaset
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for


@pytest.mark.parametrize(
    ("args", "goes"),
    [
        pytest.param({"minPodLifetimeSeconds": 1}, True, id="old enough"),
        pytest.param({"minPodLifetimeSeconds": 1, "reasons": ["Shutdown"]}, True, id="for that reason"),
        pytest.param({"minPodLifetimeSeconds": 1, "reasons": ["NodeLost"]}, False, id="for another reason"),
        pytest.param({"minPodLifetimeSeconds": 3600}, False, id="too young"),
        pytest.param({"minPodLifetimeSeconds": 1, "excludeOwnerKinds": ["ReplicaSet"]}, False, id="owner excluded"),
    ],
)
@pytest.mark.usefixtures("two_nodes")
def test_failed_pod(namespace: Namespace, program: Program, args: Object, goes: bool) -> None:
    """A failed pod goes if age, reason and owner say so; its replacement, which runs, stays."""
    namespace.create(replicaset("web", replicas=1))
    failed = namespace.wait_ready(1, "web")
    set_failed(namespace, failed, reason="Shutdown")
    wait_older(failed, 2)
    within = {"namespaces": {"include": [namespace.name]}}

    outcome = program.run(policy({"RemoveFailedPods": {**args, **within}}))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted_uids() == ([failed[0]["metadata"]["uid"]] if goes else [])
    assert len(namespace.pods("web", phase="Failed")) == (0 if goes else 1)
    wait_for(lambda: len(namespace.ready("web")) == 1, "its replacement")
