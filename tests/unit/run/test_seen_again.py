"""What a live run looks at again: the plan goes by what was read at the beginning."""

import pytest

from rebalancer.errors import ClusterError
from rebalancer.kube.tries import Deadline
from rebalancer.run.watch import siblings_of, why_closed
from tests import make

KEYS = ("kube-rebalancer/avoid", "kube-rebalancer/avoid-more")
GPU = {"key": "gpu", "effect": "NoSchedule"}


def ready(status):
    return {"conditions": [{"type": "Ready", "status": status}]}


@pytest.fixture
def why_now(cluster, time):
    """n1 had a hard taint when the run began."""
    before = make.node("n1", taints=["gpu:NoSchedule"])
    return lambda: why_closed(cluster, before, KEYS, Deadline.after(10.0, time.clock))


def test_a_node_as_it_was_takes_pods(why_now, server):
    """Also with a taint that it had before, and with our own ones: those come and go."""
    ours = {"key": KEYS[0], "value": "run-1", "effect": "PreferNoSchedule"}
    server.node("n1").update(spec={"taints": [GPU, ours]}, status=ready("True"))

    assert why_now() == ""


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({"unschedulable": True}, "True", "it is cordoned"),
        ({}, "Unknown", "it is not Ready"),
        ({}, "False", "it is not Ready"),
        ({"taints": [GPU, {"key": "drain", "effect": "PreferNoSchedule"}]}, "True", "drain:PreferNoSchedule"),
        ({"taints": [GPU, {"key": "gpu", "value": "a100", "effect": "NoSchedule"}]}, "True", "gpu=a100:NoSchedule"),
        (None, "", "it is gone"),
    ],
)
def test_a_node_that_has_changed_takes_none(why_now, server, spec, status, why):
    """Cordoned, not Ready, deleted, or with a taint of others that it did not have, whether hard or soft."""
    server.node("n1").update(spec=spec, status=ready(status))
    if spec is None:
        server.remove_node("n1")

    assert why_now().endswith(why)


def test_an_answer_that_is_not_a_node_is_an_error(why_now, server):
    server.node("n1")["status"] = {"allocatable": {"cpu": "many"}}

    with pytest.raises(ClusterError, match="does not answer /api/v1/nodes/n1 with a Node"):
        why_now()


def pod(namespace, kind="ReplicaSet", template=None):
    labels = {"app": "a"} | ({"pod-template-hash": template} if template else {})
    owners = [make.owner("o", kind=kind)]
    return make.pod(f"{kind}-{template}", namespace=namespace, owners=owners, labels=labels)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (
            [pod("shop", template="7f4"), pod("shop", template="5d9"), pod("db", template="1aa")],
            {"shop": "pod-template-hash in (5d9,7f4)", "db": "pod-template-hash in (1aa)"},
        ),
        ([pod("shop", template="5d9"), pod("shop")], {"shop": ""}),
        ([pod("shop", template=f"{number}") for number in range(301)], {"shop": ""}),  # a proxy takes no such address
        ([pod("shop", template="5d9"), pod("shop", "StatefulSet", "5d9")], {"shop": ""}),
        ([make.pod("alone", namespace="db", owners=None, labels={"pod-template-hash": "5d9"})], {"db": ""}),
    ],
)
def test_pods_of_replica_sets_are_found_by_the_hashes_of_their_templates(pods, expected):
    """Where one pod has none, or another controller than a Deployment's, all pods of its namespace are looked at."""
    assert siblings_of(pods) == expected
    assert siblings_of(pods, lambda _: "web") == dict.fromkeys(expected, "")  # a rollout brings another hash
