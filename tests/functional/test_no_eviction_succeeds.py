"""An API server that forbids or refuses every eviction is not asked two thousand times."""

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

EVICTIONS = "*/eviction"
CURE = (
    """give the program's role the rule {apiGroups: [""], resources: [pods/eviction], verbs: [create]}; """
    "`rebalancer doctor` names all that it lacks"
)
LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=500)


def asked(server):
    """The namespaces of the requests, in order."""
    return [request.path.split("/")[4] for request in server.sent("POST", EVICTIONS)]


def test_five_namespaces_without_permission_end_the_run(server, rebalancer):
    """One request in each; the report and standard error say what to add to the role."""
    pods = [pod for number in range(7) for pod in old_pods("p0", "p1", "p2", namespace=f"n{number}")]
    server.add(*two_nodes_with(*pods))
    server.forbid("create", "pods/eviction")

    outcome = rebalancer.run(server, LIMITED)

    assert outcome.exit_code == 1
    assert len(asked(server)) == len(set(asked(server))) == 5
    notice = f"no permission to create pods/eviction in namespaces {', '.join(sorted(set(asked(server))))}: {CURE}"
    assert outcome.report["strategies"][0]["error"] == notice
    assert outcome.report["warnings"] == [notice]
    assert outcome.stderr.splitlines()[-1].endswith(notice)
    lines = rebalancer(*rebalancer.arguments(server, LIMITED), "--output", "table").stdout.splitlines()
    assert lines[0].startswith("FAILED: 1 of 1 strategy (PodLifeTime: no permission to create pods/eviction in names")
    assert lines[-1].startswith("Warning: no permission to create pods/eviction in namespaces ")
    assert lines[-1].endswith(CURE)
