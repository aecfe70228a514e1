"""PodLifeTime, by the facts of the descheduler's end-to-end tests."""

import pytest

from tests.e2e.acts import set_failed, uids, wait_older
from tests.e2e.api import Api, Object
from tests.e2e.builders import job, replicaset
from tests.e2e.conftest import Cluster
from tests.e2e.namespace import Namespace
from tests.e2e.program import Program, policy
from tests.e2e.waiting import wait_for

pytestmark = pytest.mark.usefixtures("two_nodes")


def life_time(namespace: Namespace, **args: object) -> Object:
    """A policy with this strategy alone, on this namespace alone."""
    return policy({"PodLifeTime": {"namespaces": {"include": [namespace.name]}, **args}})


def test_pods_of_included_namespaces_go(namespace: Namespace, program: Program) -> None:
    """All 5 pods older than a second go."""
    namespace.create(replicaset("web", replicas=5))
    pods = namespace.wait_ready(5, "web")
    wait_older(pods, 2)

    outcome = program.run(life_time(namespace, maxPodLifeTimeSeconds=1))

    assert outcome.exit_code == 0, outcome.stderr
    assert set(outcome.evicted_uids()) == uids(pods)
    assert not uids(pods) & uids(namespace.wait_ready(5, "web"))


@pytest.mark.parametrize(
    ("phase", "args", "goes"),
    [
        pytest.param("Failed", {"states": ["Failed"]}, True, id="failed"),
        pytest.param(
            "Failed", {"states": ["Failed"], "ownerKinds": {"exclude": ["Job"]}}, False, id="failed, owner excluded"
        ),
        pytest.param("Succeeded", {"states": ["Succeeded"]}, True, id="succeeded"),
        pytest.param(
            "Succeeded",
            {"states": ["Succeeded"], "conditions": [{"reason": "PodCompleted", "status": "True"}]},
            True,
            id="succeeded, condition holds",
        ),
        pytest.param(
            "Succeeded",
            {"states": ["Succeeded"], "conditions": [{"reason": "ReasonDoesNotMatch"}]},
            False,
            id="succeeded, condition does not hold",
        ),
    ],
)
def test_pod_of_a_job_that_has_ended(
    cluster: Cluster, namespace: Namespace, program: Program, phase: str, args: Object, goes: bool
) -> None:
    """A Job's pod that has ended goes by its state, its conditions and the kind of its owner."""
    namespace.create(job("once"))
    (pod,) = wait_for(lambda: ended(cluster.api, namespace), "the Job done")
    if phase == "Failed":
        set_failed(namespace, [pod])
    else:
        done = {"type": "Initialized", "status": "True", "reason": "PodCompleted"}
        namespace.set_pod_status(pod["metadata"]["name"], {"conditions": [done]})

    outcome = program.run(life_time(namespace, **args))

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.evicted_uids() == ([pod["metadata"]["uid"]] if goes else [])
    assert bool(namespace.pods()) is not goes


def ended(api: Api, namespace: Namespace) -> list[Object] | None:
    """The pod of a Job that the Job's controller has finished with."""
    done = api.read("Job", "once", namespace.name).get("status", {}).get("succeeded") == 1
    pods = [pod for pod in namespace.pods() if not pod["metadata"].get("finalizers")]
    return pods if done and pods else None
