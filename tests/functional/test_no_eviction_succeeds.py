"""An API server that forbids or refuses every eviction is not asked two thousand times."""

from tests.functional.objects import OLD, old_pods, policy, two_nodes_with

EVICTIONS = "*/eviction"
CURE = (
    """give the program's role the rule {apiGroups: [""], resources: [pods/eviction], verbs: [create]}; """
    "`rebalancer doctor` names all that it lacks"
)
LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=500)


def crowd(server, namespaces, each):
    """So many old pods in each of the namespaces `n0`, `n1`, ..."""
    pods = []
    for number in range(namespaces):
        for pod in old_pods(*[f"p{index}" for index in range(each)]):
            pod["metadata"] |= {"namespace": f"n{number}", "uid": f"uid-{number}-{pod['metadata']['name']}"}
            pods.append(pod)
    for pod in two_nodes_with(*pods):
        server.add(pod)


def asked(server):
    """The namespaces of the requests, in order."""
    return [request.path.split("/")[4] for request in server.sent("POST", EVICTIONS)]


def test_five_namespaces_without_permission_end_the_run(server, rebalancer):
    """One request in each; the report and standard error say what to add to the role."""
    crowd(server, 7, 3)
    server.forbid("create", "pods/eviction")

    outcome = rebalancer.run(server, LIMITED)

    assert outcome.exit_code == 1
    assert len(asked(server)) == len(set(asked(server))) == 5
    notice = f"no permission to create pods/eviction in namespaces {', '.join(sorted(set(asked(server))))}: {CURE}"
    assert outcome.report["strategies"][0]["error"] == notice
    assert outcome.report["warnings"] == [notice]
    assert outcome.stderr.splitlines()[-1].endswith(notice)


def test_the_first_line_names_the_missing_permission(server, rebalancer):
    """On a table; what is needed stands at its end as a rule to add."""
    crowd(server, 1, 3)
    server.forbid("create", "pods/eviction")
    named = ("--policy", rebalancer.policy(LIMITED), "--kubeconfig", server.kubeconfig(rebalancer.folder))

    lines = rebalancer("run", "--yes", "--no-lease", *named).stdout.splitlines()

    assert lines[0].startswith("FAILED: 1 eviction (no permission to create pods/eviction: ")
    assert lines[-1].startswith("Warning: no permission to create pods/eviction in namespace ")
    assert lines[-1].endswith(CURE)
