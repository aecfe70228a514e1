"""What the program says, where it says it, and with which exit code it ends."""

import pytest

from tests.functional.objects import OLD, policy

LIMITED = policy(OLD, maxNoOfPodsToEvictTotal=1)


@pytest.mark.parametrize(
    ("options", "evicted", "refused"),
    [
        ((), False, False),
        (("-v", "1"), True, False),
        (("-v=1",), True, False),
        (("--v=2",), True, True),
        (("--v", "9"), True, True),
    ],
)
def test_how_much_is_logged(two, rebalancer, options, evicted, refused):
    """Evictions from 1 on, refusals from 2 on; the number in any of the ways that the descheduler takes it."""
    stderr = rebalancer.run(two, LIMITED, *options).stderr

    assert ("evicted default/a" in stderr, "refused by TotalLimit" in stderr) == (evicted, refused)


@pytest.mark.parametrize(("options", "exit_code"), [((), 0), (("--fail-on-error",), 1), (("--dry-run",), 1)])
def test_a_strategy_that_fails_does_not_stop_the_others(two, rebalancer, options, exit_code):
    """It makes a live run fail only on demand where another one has evicted, and a dry run in any case."""
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {"metricsServer": True}}
    both = policy(OLD, maxNoOfPodsToEvictTotal=1, metricsProviders=[{"source": "KubernetesMetrics"}])
    (profile,) = both["profiles"]
    profile["pluginConfig"].append({"name": "LowNodeUtilization", "args": args})
    profile["plugins"]["balance"] = {"enabled": ["LowNodeUtilization"]}

    outcome = rebalancer.run(two, both, *options)

    assert outcome.exit_code == exit_code
    assert outcome.evicted() == ["default/a"]


@pytest.mark.parametrize(("most", "options", "exit_code"), [(1, (), 10), (0, (), 0), (1, ("--strict",), 10)])
def test_a_dry_run_tells_by_its_exit_code_whether_there_is_something_to_do(two, rebalancer, most, options, exit_code):
    """On request; a live run has no such code, since a Job would start it again."""
    asked = policy(OLD, maxNoOfPodsToEvictTotal=most)

    assert rebalancer.run(two, asked, "--dry-run", "--detailed-exitcode", *options).exit_code == exit_code
    assert rebalancer.run(two, asked, "--detailed-exitcode").exit_code == 2
    assert two.evicted == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--now", "2026-01-15T12:00:00Z"), "--snapshot"),
        (("--descheduling-interval", "often"), "--descheduling-interval"),
        (("--leader-elect",), "--leader-elect goes with --descheduling-interval"),
        (("--leader-elect=true", "--descheduling-interval", "5m", "--leader-elect-lease-duration", "15s"), "more than"),
        (("--secure-port", "70000"), "--secure-port"),
        (("--output", "xml"), "'xml'"),
        (("--frobnicate",), "--frobnicate"),
        (("--snapshot", "nowhere.json"), "--snapshot"),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_bad_usage(two, rebalancer, options, words):
    """Exit code 2, the option named, and the cluster not even looked at."""
    outcome = rebalancer.run(two, LIMITED, *options)

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert words in outcome.stderr
    assert two.requests == []
