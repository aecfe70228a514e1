"""Reading a cluster whose API server is slow, busy, broken, forbidding or odd."""

import pytest

from tests.functional.objects import DAY, OLD, pdb, pod, policy

PODS = "/api/v1/pods"


@pytest.fixture
def plan(two, rebalancer):
    """Run dry."""
    return lambda *options: rebalancer.run(two, policy(OLD), "--dry-run", *options)


@pytest.mark.parametrize("status", [500, 503, 504])
def test_a_server_that_fails_once_is_asked_again(two, plan, status):
    """And what failed is told on standard error, since a wait is to be explained."""
    two.fail("GET", PODS, status=status, times=1)

    outcome = plan()

    assert outcome.evicted() == ["default/a", "default/b"]
    assert str(status) in outcome.stderr


@pytest.mark.parametrize("resource", ["nodes", "pods", "poddisruptionbudgets.policy"])
def test_a_missing_permission_is_named(two, rebalancer, resource):
    """Exit code 3 with verb and resource, also live, and before anything is evicted."""
    two.forbid("list", resource)

    outcome = rebalancer.run(two, policy(OLD, maxNoOfPodsToEvictTotal=1))

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert f"no permission to list {resource}" in outcome.stderr
    assert two.evicted == []


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["live", "dry"])
def test_all_missing_permissions_are_named_at_once_with_their_rules(two, rebalancer, options):
    """So that a role is mended in one go; a dry run needs none to evict."""
    two.forbid("list", "nodes")
    two.forbid("list", "poddisruptionbudgets.policy")
    two.forbid("create", "pods/eviction")

    outcome = rebalancer.run(two, policy(OLD), *options)

    assert outcome.exit_code == 3
    evictions = 'create pods/eviction: add to the ClusterRole {apiGroups: [""], resources: [pods/eviction], verbs:'
    assert (evictions in outcome.stderr) is not bool(options)
    assert (
        "no permission to list nodes, poddisruptionbudgets.policy: add to the ClusterRole "
        '{apiGroups: [""], resources: [nodes], verbs: [list]}, '
        "{apiGroups: [policy], resources: [poddisruptionbudgets], verbs: [list]}"
    ) in outcome.stderr


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["live", "dry"])
def test_pdbs_must_be_listed_whatever_the_policy(two, rebalancer, options):
    """Without them nobody can say what may go, though no protection of the policy asks for them."""
    two.forbid("list", "poddisruptionbudgets.policy")

    outcome = rebalancer.run(two, policy(OLD), *options)

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert "no permission to list poddisruptionbudgets.policy" in outcome.stderr
    assert two.evicted == []


def _with(name, **parts):
    """A pod with parts of it replaced; `spec` and `status` by field."""
    made = pod(name, age=DAY)
    for part, fields in parts.items():
        made[part] |= fields
    return made


@pytest.mark.parametrize(
    "broken",
    [
        _with("odd", spec={"containers": [{"resources": {"requests": {"cpu": "many"}}}]}),
        _with("odd", spec={"tolerations": "all"}),
        _with("odd", metadata={"creationTimestamp": "yesterday"}),
        _with("odd", metadata={"labels": ["app"]}),
        _with("odd", status={"containerStatuses": [{"restartCount": "often"}]}),
    ],
    ids=["quantity", "tolerations", "time", "labels", "restarts"],
)
def test_a_malformed_pod_is_reported_and_left_alone(two, rebalancer, broken):
    """The run goes on with the others."""
    two.add(broken)

    outcome = rebalancer.run(two, policy(OLD, maxNoOfPodsToEvictTotal=9))

    assert outcome.exit_code == 0
    assert two.evicted == ["default/a", "default/b"]
    told = [*outcome.report["warnings"], *(f"{each['name']}: {each['by']}" for each in outcome.report["refusals"])]
    assert any("odd" in each for each in told), told


def test_a_pdb_that_cannot_be_read_keeps_its_pods(two, rebalancer):
    """In a live run, whatever the server would have said; the pods of other namespaces go."""
    two.add(pod("c", namespace="elsewhere"))
    two.add({**pdb("odd", allowed=5), "spec": {"selector": {"matchLabels": {"app": 5}}}})

    outcome = rebalancer.run(two, policy(OLD, maxNoOfPodsToEvictTotal=9))

    assert two.evicted == ["elsewhere/c"]
    assert outcome.refused() == {"a": "PDB", "b": "PDB"}
    assert any("default/odd is malformed and allows no disruption" in each for each in outcome.report["warnings"])
