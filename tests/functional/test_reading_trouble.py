"""Reading a cluster whose API server is slow, busy, broken, forbidding or odd."""

import pytest

from tests.functional.objects import OLD, policy


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["live", "dry"])
@pytest.mark.parametrize("resource", ["nodes", "pods", "poddisruptionbudgets.policy"])
def test_a_missing_permission_is_named(two, rebalancer, resource, options):
    """Exit code 3 with verb and resource, before anything is evicted; PDBs must be listed whatever the policy."""
    two.forbid("list", resource)

    outcome = rebalancer.run(two, policy(OLD, maxNoOfPodsToEvictTotal=1), *options)

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
