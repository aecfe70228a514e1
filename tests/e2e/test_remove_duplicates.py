"""RemoveDuplicates, by the facts of the descheduler's end-to-end test."""

import pytest

from tests.e2e.acts import by_node, cordon, uids
from tests.e2e.api import Object
from tests.e2e.builders import LOCAL_STORAGE, deployment, node
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy


def duplicates(namespace: Namespace, evictor: Object) -> Object:
    return policy({"RemoveDuplicates": {"namespaces": {"include": [namespace.name]}}}, evictor)


@pytest.mark.parametrize(
    ("replicas", "volumes", "evictor", "evicted"),
    [
        pytest.param(4, [], {"minReplicas": 3}, 2, id="4 replicas"),
        pytest.param(
            5, [LOCAL_STORAGE], {"minReplicas": 3, "evictLocalStoragePods": True}, 2, id="5 with local storage"
        ),
        pytest.param(3, [], {"minReplicas": 4}, 0, id="fewer than minReplicas"),
    ],
)
def test_replicas_of_one_node(
    controlplane: ControlPlane,
    namespace: Namespace,
    program: Program,
    replicas: int,
    volumes: list[Object],
    evictor: Object,
    evicted: int,
) -> None:
    """Replicas that are all on one of two nodes are evicted down to their share, unless there are too few."""
    namespace.create(node("a"), node("b"), deployment("web", replicas=replicas, volumes=volumes, node="a"))
    before = uids(namespace.wait_ready(replicas, "web"))

    outcome = program.run(duplicates(namespace, evictor))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted_uids()) == evicted
    assert before - uids(namespace.wait_ready(replicas, "web")) == set(outcome.evicted_uids())


def test_replicas_are_spread(controlplane: ControlPlane, namespace: Namespace, program: Program) -> None:
    """After the scheduler has placed what was evicted each node has its share, and nothing is left to do."""
    namespace.create(node("a"), node("b"))
    cordon(controlplane.api, "b")
    namespace.create(deployment("web", replicas=4, cpu="500m"))
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 4}
    cordon(controlplane.api, "b", on=False)

    outcome = program.run(duplicates(namespace, {}))

    assert outcome.exit_code == 0, outcome.stderr
    assert len(outcome.evicted()) == 2
    assert by_node(namespace.wait_ready(4, "web")) == {"a": 2, "b": 2}
    assert program.dry_run(duplicates(namespace, {})).evicted() == []
