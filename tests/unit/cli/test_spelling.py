"""Arguments as the descheduler's manifests and kubectl's users spell them."""

import pytest

from rebalancer.cli.group import spelled, with_command

SWITCHES = {"--dry-run", "--leader-elect"}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--policy_config_file", "a_b"], ["--policy-config-file", "a_b"]),
        (["--policy_config_file=a_b"], ["--policy-config-file=a_b"]),
        (["--dry-run=true"], ["--dry-run"]),
        (["--dry_run=T"], ["--dry-run"]),
        (["--dry-run=false", "--leader-elect=1"], ["--leader-elect"]),
        (["--dry-run=maybe"], ["--dry-run=maybe"]),
        (["--context=true"], ["--context=true"]),
        (["-vv"], ["-v", "2"]),
        (["-v"], ["-v", "1"]),
        (["-v", "3"], ["-v", "3"]),
        (["-v", "--dry-run"], ["-v", "1", "--dry-run"]),
        (["-v=4"], ["-v=4"]),
        (["--", "--dry_run=true"], ["--", "--dry_run=true"]),
    ],
)
def test_each_spelling_means_the_one_that_is_declared(given, meant):
    assert list(spelled(given, SWITCHES)) == meant


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--policy-config-file", "p"], ["run", "--policy-config-file", "p"]),
        (["validate", "--policy", "p"], ["validate", "--policy", "p"]),
        (["--help"], ["--help"]),
        (["help"], ["--help"]),
        (["help", "recommend", "nodes"], ["recommend", "nodes", "--help"]),
        (["-h"], ["-h"]),
        ([], []),
        (["validat"], ["validat"]),
    ],
)
def test_without_a_command_flags_mean_run(given, meant):
    """As in the descheduler; help, and a command that does not exist, stay what they are."""
    assert with_command(given) == meant
