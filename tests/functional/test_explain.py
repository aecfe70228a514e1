"""`explain` on the cluster of the demonstration."""

import json
from pathlib import Path

import pytest

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster.json"


@pytest.fixture
def explain(rebalancer):
    def call(*arguments):
        return rebalancer("explain", *arguments, "--policy", "demo", "--snapshot", CLUSTER)

    return call


def test_a_pod_that_goes(explain):
    """The strategy, the node's figures, and what each node scores."""
    told = explain("search-7c9d06", "-n", "shop", "--scores").stdout

    assert told.startswith("shop/search-7c9d06, on node-04: goes\n  LowNodeUtilization: node-04 at cpu 94.2 % > 65 %")
    assert "12 nodes evaluated, 11 feasible\n    1 node: node(s) had untolerated taint(s)\n" in told
    assert "    node-10: 668 (TaintToleration 300, NodeResourcesFit 93," in told


def test_all_that_holds_a_pod_is_named(explain):
    """Not the first cause only; and what strategies say beside it.  A pod may be named as reports name it."""
    told, same = explain("agent-01", "-n", "kube-system").stdout, explain("kube-system/agent-01").stdout

    assert "agent-01, on node-01: stays" in told
    assert "would have to change: critical: priority 2000001000 >= 2000000000; " in told
    assert "belongs to a DaemonSet" in told
    assert same == told


def test_owners_and_nodes_stand_for_their_pods(explain):
    owner = json.loads(explain("deploy/search", "-n", "shop", "-o", "json").stdout)
    node = json.loads(explain("node/node-04", "-o", "json").stdout)

    assert {each["name"].rpartition("-")[0] for each in owner["pods"]} == {"search"}
    assert node["node"] == "node-04"
    assert {each["node"] for each in node["pods"]} == {"node-04"}


@pytest.mark.parametrize(("node", "words"), [("n2", "there is no pod on node n2"), ("n3", "there is no node n3")])
def test_a_node_without_pods_is_told_of(server, rebalancer, node, words):
    server.add(*two_nodes_with(*old_pods("a")))

    done = rebalancer.at(server, "explain", f"node/{node}", "--policy", rebalancer.policy(policy(OLD)))

    assert done.exit_code == 2
    assert words in done.stderr


FREEZE = [{"from": "2020-01-01", "to": "2099-12-31"}]


@pytest.mark.parametrize("of_profile", [False, True])
def test_a_pod_is_explained_outside_the_windows_too(server, rebalancer, of_profile):
    """The pod is found, and each strategy says that it was not asked."""
    server.add(*two_nodes_with(*old_pods("a", "b", "c")))
    asked = policy(OLD, **({} if of_profile else {"freeze": FREEZE}))
    if of_profile:
        asked["profiles"][0]["freeze"] = FREEZE

    done = rebalancer.at(server, "explain", "default/a", "--policy", rebalancer.policy(asked))

    assert "default/a, on n1: stays" in done.stdout, done.stderr
    assert "a freeze lasts until 2100-01-01T00:00:00Z" in done.stdout
