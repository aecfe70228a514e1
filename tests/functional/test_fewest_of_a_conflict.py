"""`selection: fewest` in a live run: one pod in the way of two goes, and if the server says no, the two."""

from tests.functional.objects import pdb, pod, policy, two_nodes_with

FEWEST = policy(("RemovePodsViolatingInterPodAntiAffinity", {"selection": "fewest"}))
APART_FROM_A = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
        ]
    }
}


def conflict():
    """pod-b and pod-c do not want to run beside pod-a, and do."""
    shy = [pod(f"pod-{each}", owner=each, affinity=APART_FROM_A) for each in ("b", "c")]
    return two_nodes_with(pod("pod-a", owner="a"), *shy)


def test_the_one_in_the_way_goes(server, rebalancer):
    """The report names the pods that it is in the way of."""
    for each in conflict():
        server.add(each)

    outcome = rebalancer.run(server, FEWEST)

    assert outcome.evicted() == ["default/pod-a"]
    (eviction,) = outcome.report["evictions"]
    assert eviction["reason"] == "in the way of default/pod-b on n1 and 1 more, by their anti-affinity"
    assert eviction["cause"] == {"code": "InTheWay", "pod": "default/pod-b", "node": "n1", "others": 1}


def test_where_a_budget_keeps_it_the_two_go(server, rebalancer):
    """Its PDB allows nothing, so the fewest are the others."""
    for each in (*conflict(), pdb("a", allowed=0, app="a")):
        server.add(each)

    assert rebalancer.run(server, FEWEST).evicted() == ["default/pod-b", "default/pod-c"]
