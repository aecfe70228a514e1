"""Which cluster a run means, and what is said when there is none."""

from tests.functional.objects import OLD, policy

LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=1)


def test_the_home_directory_is_looked_into(two, rebalancer):
    """~/.kube/config, as kubectl does."""
    (rebalancer.folder / ".kube").mkdir()
    two.kubeconfig(rebalancer.folder).rename(rebalancer.folder / ".kube" / "config")

    outcome = rebalancer("run", "--policy", rebalancer.policy(LIMITED), "--output", "json", "--dry-run")

    assert outcome.report["cluster"] == {"context": "fake", "server": two.url}


def test_no_cluster_at_all(rebalancer):
    """Exit code 3, and the ways to name one."""
    for command in (("run", "--policy", rebalancer.policy(LIMITED)), ("snapshot", "--output", "file.json")):
        outcome = rebalancer(*command)

        assert (outcome.exit_code, outcome.stdout) == (3, "")
        assert all(word in outcome.stderr for word in ("no cluster", "--kubeconfig", "KUBECONFIG"))
