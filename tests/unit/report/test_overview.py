"""How large a plan is beside its cluster, and what is called out."""

import pytest

from rebalancer.cluster.pod import Owner
from rebalancer.engine.limits import Limits
from rebalancer.report.overview import NO_LIMITS, overview
from tests.make import pdb, pod

LIMITED = Limits(total=100)
WEB = Owner("ReplicaSet", "web", "1", controller=True)
API = Owner("ReplicaSet", "api", "2", controller=True)


def crowd(count, owner=None, namespace="default", name="p"):
    return [
        pod(f"{name}{i}", namespace=namespace, owners=[owner] if owner else None, labels={"app": name})
        for i in range(count)
    ]


def alarms(evicted, pods, budgets=(), limits=LIMITED):
    return overview(evicted, pods, budgets, limits)["alarms"]


def test_counts_and_shares_are_told():
    web, api = crowd(10, WEB, name="web"), crowd(10, API, "shop", "api")
    found = overview([*web[:1], *api[:3]], [*web, *api, *crowd(80)], [pdb("api", 1, "shop")], Limits(9, None, 40))

    assert found == {
        "pods": {"evicted": 4, "total": 100},
        "namespaces": [
            {"name": "shop", "evicted": 3, "total": 10},
            {"name": "default", "evicted": 1, "total": 90},
        ],
        "owners": [
            {"namespace": "shop", "kind": "ReplicaSet", "name": "api", "evicted": 3, "total": 10, "pdb": True},
            {"namespace": "default", "kind": "ReplicaSet", "name": "web", "evicted": 1, "total": 10, "pdb": False},
        ],
        "limits": {"total": 40, "node": 9, "namespace": None},
        "alarms": [],
    }


def test_only_the_five_largest_are_named():
    """Of equal ones those that come first by name."""
    pods = [each for letter in "gfedcba" for each in crowd(20, namespace=letter)]
    gone = [each for each in pods if each.name == "p0"]

    assert [each["name"] for each in overview(gone, pods, (), LIMITED)["namespaces"]] == list("abcde")


def test_more_than_a_fifth_of_the_cluster_is_called_out():
    pods = crowd(100)

    assert alarms(pods[:20], pods) == []
    assert alarms(pods[:21], pods) == ["21 of 100 pods of the cluster: more than a fifth"]


SERVES = "nothing serves until its replacement is Ready"
FOUR, THREE, LARGE = crowd(4, WEB, name="web"), crowd(3, WEB, name="web"), crowd(100, API, name="api")
SINGLES = [*crowd(1, API, name="api"), *crowd(1, WEB, name="web")]


@pytest.mark.parametrize(
    ("gone", "of", "pdbs", "told"),
    [
        (2, FOUR, [], []),
        (3, FOUR, [], ["3 of 4 pods of ReplicaSet default/web, which no PDB covers: more than half"]),
        (3, FOUR, [pdb("web", 9)], []),
        (4, FOUR, [], ["4 of 4 pods of ReplicaSet default/web, which no PDB covers: all"]),
        (2, THREE, [], ["2 of 3 pods of ReplicaSet default/web, which no PDB covers: more than half"]),
        (50, LARGE, [], []),
        (51, LARGE, [], ["51 of 100 pods of ReplicaSet default/api, which no PDB covers: more than half"]),
        (2, SINGLES, [], [f"the only pod of ReplicaSet default/api, ReplicaSet default/web: {SERVES}"]),
        (2, SINGLES, [pdb("web", 1)], [f"the only pod of ReplicaSet default/api: {SERVES}"]),
    ],
)
def test_more_than_half_of_an_owner_without_a_pdb_is_called_out(gone, of, pdbs, told):
    """Half is not, and a PDB looks after its own; an owner that loses all, or its only pod, is named."""
    assert alarms(of[:gone], [*of, *crowd(500)], pdbs) == told


def test_pods_that_have_ended_are_no_part_of_what_an_owner_has():
    """A Job's failed pods go without a word."""
    failed = [pod(f"f{i}", owners=[WEB], phase="Failed") for i in range(4)]

    assert alarms(failed, [*failed, *crowd(96)]) == []


def test_a_policy_without_limits_is_called_out():
    assert alarms([], crowd(5), limits=Limits()) == [NO_LIMITS]
