"""What is said about a policy, at the command line, as whole texts."""

import pytest

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
OLD_HEAD = "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n"

TWO_MISTAKES = f"{HEAD}maxNoOfPodsToEvictPerNod: 3\nprofiles:\n  - name: 7\n"


@pytest.mark.parametrize("command", [("validate",), ("run", "--dry-run")])
def test_mistakes_are_told_at_once(rebalancer, command):
    """Each with its line and its cure, before anything is read."""
    path = rebalancer.folder / "policy.yaml"
    path.write_text(TWO_MISTAKES)

    outcome = rebalancer(*command, "--policy", path)

    assert outcome.exit_code == 2
    assert outcome.stderr == (
        f"Error: policy {path} cannot be used:\n"
        "  line 3, maxNoOfPodsToEvictPerNod: unknown key 'maxNoOfPodsToEvictPerNod' has no effect; "
        "did you mean 'maxNoOfPodsToEvictPerNode'?\n"
        "  line 5, profiles[0].name: text is expected, not 7\n"
    )


def test_several_policies_are_all_checked_and_only_one_can_run(rebalancer):
    """Each has its line, and one that is wrong does not hide behind another."""
    bad = rebalancer.folder / "bad.yaml"
    bad.write_text(f"{HEAD}profile: []\n")

    done = rebalancer("validate", "--policy", bad, "--policy", "safe")
    run = rebalancer("run", "--policy", "demo", "--policy", "safe", "--snapshot", "nowhere")

    assert (done.exit_code, done.stdout.partition(":")[0]) == (2, "safe is valid")
    assert "profile: unknown key 'profile' has no effect; did you mean 'profiles'?" in done.stderr
    assert (run.exit_code, "there are several policies: give one" in run.stderr) == (2, True)


def test_an_old_policy_is_written_in_the_present_form(rebalancer):
    """Comments say what has no effect; what is printed is a policy."""
    old = rebalancer.folder / "old.yaml"
    old.write_text(
        f"{OLD_HEAD}strategies:\n  PodLifeTime:\n    enabled: true\n    weight: 3\n"
        '    params: {podLifeTime: {maxPodLifeTimeSeconds: 5}, labelSelector: {matchLabels: {a: "1e3"}}}\n'
        "  RemoveDuplicates: {enabled: false}\n"
    )

    written = rebalancer("convert", old).stdout
    new = rebalancer.folder / "new.yaml"
    new.write_text(written)

    assert written.startswith(
        "# line 6, strategies.PodLifeTime.weight: weight has no effect, and never had\n"
        "# line 8, strategies.RemoveDuplicates: RemoveDuplicates is not enabled and left out\n"
        "apiVersion: descheduler/v1alpha2\n"
    )
    assert rebalancer("validate", "--policy", new).stdout.endswith("is valid: 1 profile, strategies PodLifeTime\n")


def test_a_misspelt_limit_is_not_left_out_of_an_old_policy(rebalancer):
    """What is printed would run without any limit, and nothing would say so any more."""
    old = rebalancer.folder / "old.yaml"
    old.write_text(f"{OLD_HEAD}maxNoOfPodsToEvictPerNod: 1\nstrategies:\n  RemoveDuplicates: {{enabled: true}}\n")

    done = rebalancer("convert", old)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "line 3, maxNoOfPodsToEvictPerNod: unknown key" in done.stderr
    assert "did you mean 'maxNoOfPodsToEvictPerNode'?" in done.stderr
