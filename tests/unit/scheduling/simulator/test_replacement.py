"""What controllers make in place of a pod."""

import pytest

from rebalancer.cluster.pod import Placement, PodSpec, SpreadConstraint
from rebalancer.cluster.resources import Resources
from rebalancer.cluster.scheduler_inputs import Template
from rebalancer.scheduling.simulator.replacement import Moment, replacement
from tests import make

SPEC = PodSpec(requests={"cpu": 100})


def replaced(kind: str, cpu: str = "90m", **fields):
    pod = make.pod("web-1", cpu=cpu, owners=(make.owner("web", kind),), claims=("data-web-1",), labels={"zone": "x"})
    template = Template(**{"labels": {"app": "web"}, "spec": SPEC, **fields})
    return replacement(pod, {(kind, f"{kind}-web"): template})


def test_a_replica_sets_comes_at_once_from_the_template() -> None:
    """Requests lowered in place, labels of the binding and claims are not its own."""
    found = replaced("ReplicaSet")

    assert found.moments == (Moment.AT_ONCE,)
    assert found.pod is not None
    assert (found.pod.labels, found.pod.spec.requests, found.pod.claims) == ({"app": "web"}, {"cpu": 100}, ())
    assert (found.pod.node, found.pod.name) == ("", "web-1's replacement")


@pytest.mark.parametrize(
    ("template", "requests"),
    [
        ({"cpu": 100}, {"cpu": 900}),  # with a sidecar, or as a VPA recommends
        ({}, {"cpu": 900}),  # by a LimitRange, or by its limits alone
        ({"cpu": 900, "memory": 1}, {"cpu": 900, "memory": 1}),
    ],
)
def test_what_admission_adds_to_a_pod_is_added_to_its_replacement(template: Resources, requests: Resources) -> None:
    """Then the pod stands in for its template, but for its labels."""
    found = replaced("ReplicaSet", cpu="900m", spec=PodSpec(requests=template))

    assert found.pod is not None
    assert (found.pod.spec.requests, found.pod.labels) == (requests, {"app": "web"})


def test_where_admission_lets_a_pod_run_its_replacement_may_run() -> None:
    """A RuntimeClass and a namespace may have a node selector and tolerations for all pods."""
    pod = make.pod("web-1", cpu="100m", owners=(make.owner("web", "ReplicaSet"),), node_selector={"pool": "gpu"})

    found = replacement(pod, {("ReplicaSet", "ReplicaSet-web"): Template(labels={"app": "web"}, spec=SPEC)})

    assert found.pod is not None
    assert found.pod.spec.node_selector == {"pool": "gpu"}


def test_the_gates_of_a_template_stay() -> None:
    """The pod that runs has none any more."""
    found = replaced("ReplicaSet", cpu="900m", spec=PodSpec(requests={}, placement=Placement(gated=True)))

    assert found.pod is not None
    assert found.pod.spec.placement.gated


def test_a_stateful_sets_comes_afterwards_with_name_and_claims() -> None:
    """The volumes say where it may go."""
    found = replaced("StatefulSet")

    assert found.moments == (Moment.AFTERWARDS,)
    assert found.pod is not None
    assert (found.pod.name, found.pod.claims) == ("web-1", ("data-web-1",))


def test_a_jobs_comes_when_its_policy_says() -> None:
    """`podReplacementPolicy: Failed` waits; any other may wait, as after a failure, or not."""
    assert replaced("Job").moments == (Moment.AT_ONCE, Moment.AFTERWARDS)
    assert replaced("Job", only_failed=True).moments == (Moment.AFTERWARDS,)


def test_nobody_knows_the_replacement_of_an_owner_in_a_rollout() -> None:
    """Nor that of one that was not read, nor whether a bare pod has one."""
    assert "rolled out" in replaced("ReplicaSet", changing=True).unknown
    assert "not read" in replacement(make.pod("a"), {}).unknown
    assert "no controller" in replacement(make.pod("a", owners=None), {}).unknown


def test_label_keys_become_part_of_the_selector() -> None:
    """By the template's labels, as the API server writes them into a pod."""
    spread = SpreadConstraint(1, "zone", "DoNotSchedule", make.selector(app="web"), ("version",))
    spec = PodSpec(requests={"cpu": 100}, spread=(spread,))

    found = replaced("ReplicaSet", spec=spec, labels={"app": "web", "version": "v2"})

    assert found.pod is not None
    assert found.pod.spec.spread[0].selector == make.selector(app="web", version="v2")


def test_a_pod_that_gets_claims_of_its_own_is_unknown() -> None:
    """They are made with the pod, and nobody knows yet which volumes these will be."""
    assert "new claims" in replaced("ReplicaSet", makes_claims=True).unknown
