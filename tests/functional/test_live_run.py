"""A live run, from the policy to what reaches the server."""

from tests.functional.objects import OLD, pod, policy, two_nodes_with
from tests.functional.program import finish


def test_a_live_run_evicts_what_its_report_says(three, rebalancer):
    """As a process: evictions reach the server oldest first, and the report on standard output lists just these."""
    outcome = finish(rebalancer.start(*rebalancer.arguments(three, policy(OLD, maxNoOfPodsToEvictTotal=2))))

    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert three.evicted == ["default/a", "default/b"] == outcome.evicted()
    assert three.pod_names() == ["default/c"]
    assert outcome.report["dryRun"] is False
    assert outcome.report["cluster"] == {"context": "fake", "server": three.url}
    assert outcome.report["warnings"] == []


def test_a_policy_without_limits_is_warned_about_before_it_evicts(three, rebalancer):
    """On standard error at once, and in the report."""
    outcome = rebalancer.run(three, policy(OLD))

    assert any("no limit" in each for each in outcome.report["warnings"])
    assert "no limit" in outcome.stderr
    assert len(outcome.evicted()) == 3


def test_a_dry_run_without_limits_is_no_reason_to_warn(three, rebalancer):
    """Nothing can happen."""
    outcome = rebalancer.run(three, policy(OLD), "--dry-run")

    assert (outcome.report["warnings"], outcome.stderr) == ([], "")


def test_a_misspelt_limit_stops_a_live_run_before_anything_is_asked(three, rebalancer):
    """Once or in a loop; a dry run warns and shows what would go."""
    misspelt = policy(OLD, maxNoOfPodsToEvictTotl=1)

    for options in ([], ["--descheduling-interval", "5m"]):
        outcome = rebalancer.run(three, misspelt, *options)
        assert (outcome.exit_code, three.requests) == (2, [])
        assert "maxNoOfPodsToEvictTotl: unknown key 'maxNoOfPodsToEvictTotl'" in outcome.stderr
    dry = rebalancer.run(three, misspelt, "--dry-run")
    assert (dry.exit_code, len(dry.report["evictions"])) == (0, 3)


def test_several_requests_at_a_time_evict_what_one_after_the_other_would(rebalancer, server):
    """The report too is the same, but for the seconds."""
    for each in two_nodes_with(*(pod(f"p{number}", owner=f"owner-{number}") for number in range(20))):
        server.add(each)
    planned = rebalancer.run(server, policy(OLD), "--dry-run")

    outcome = rebalancer.run(server, policy(OLD), "--max-parallel", "8")

    assert outcome.exit_code == 0
    assert sorted(server.evicted) == sorted(planned.evicted())
    assert ageless(outcome.report["evictions"]) == ageless(planned.report["evictions"])


def ageless(evictions: list[dict]) -> list[dict]:
    """Two runs look at the clock at two times."""
    return [{**each, "cause": {**each["cause"], "ageSeconds": None}} for each in evictions]
