"""A live run, from the policy to what reaches the server."""

import json

import pytest

from tests.functional.objects import OLD, pod, policy, two_nodes_with
from tests.functional.program import finish


def test_a_live_run_evicts_what_its_report_says(three, rebalancer):
    """As a process at its most talkative: standard output is the report alone; the oldest pods go first."""
    three.fail("GET", "/api/v1/nodes", status=500, times=1)

    arguments = rebalancer.arguments(three, policy(OLD, maxNoOfPodsToEvictTotal=2))
    outcome = finish(rebalancer.start(*arguments, "--v", "2"))

    assert outcome.exit_code == 0
    assert three.evicted == ["default/a", "default/b"] == outcome.evicted()
    assert three.pod_names() == ["default/c"]
    assert (outcome.report["kind"], outcome.report["dryRun"], outcome.report["warnings"]) == ("Report", False, [])
    assert outcome.report["cluster"] == {"context": "fake", "server": three.url}
    for word in ("try 1 failed", "read 3 objects of kind Pod", "evicted default/a on n1"):
        assert word in outcome.stderr


def test_a_policy_without_limits_is_warned_about_before_it_evicts(three, rebalancer):
    """On standard error at once, and in the report; in a dry run nothing can happen."""
    dry, live = rebalancer.run(three, policy(OLD), "--dry-run"), rebalancer.run(three, policy(OLD))

    assert (dry.report["warnings"], dry.stderr) == ([], "")
    assert any("no limit" in each for each in live.report["warnings"])
    assert "no limit" in live.stderr
    assert len(live.evicted()) == 3


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
    server.add(*two_nodes_with(*(pod(f"p{number}", owner=f"owner-{number}") for number in range(20))))
    planned = rebalancer.run(server, policy(OLD), "--dry-run")

    outcome = rebalancer.run(server, policy(OLD), "--max-parallel", "8")

    assert outcome.exit_code == 0
    assert sorted(server.evicted) == sorted(planned.evicted())
    assert ageless(outcome.report["evictions"]) == ageless(planned.report["evictions"])


def ageless(evictions: list[dict]) -> list[dict]:
    """Two runs look at the clock at two times."""
    return [{**each, "cause": {**each["cause"], "ageSeconds": None}} for each in evictions]


@pytest.mark.parametrize(("total", "most", "evicted"), [(None, 2, 2), (1, 2, 1), (2, 1, 1), (0, 2, 0), (None, 0, 0)])
def test_the_smaller_limit_counts(three, rebalancer, total, most, evicted):
    """Of the policy and of --max-evictions; 0 evicts nothing."""
    limits = {} if total is None else {"maxNoOfPodsToEvictTotal": total}

    outcome = rebalancer.run(three, policy(OLD, **limits), "--max-evictions", most)

    assert len(three.evicted) == len(outcome.evicted()) == evicted
    assert "no limit" not in outcome.stderr


def test_warnings_about_the_policy_come_first(three, rebalancer):
    """On standard error before anything is read, also where the report goes into a pipe."""
    twice = rebalancer.folder / "twice.yaml"
    text = json.dumps(policy(OLD))
    twice.write_text(text.replace("{", '{"maxNoOfPodsToEvictTotal": 2, "maxNoOfPodsToEvictTotal": 1, ', 1))
    three.fail("GET", "/api/v1/nodes", status=400, message="not now")

    outcome = rebalancer.at(three, "run", "--yes", "--policy", twice)

    first, last = outcome.stderr.splitlines()
    assert f" WARNING rebalancer.run.start: policy {twice}: " in first
    assert "maxNoOfPodsToEvictTotal" in first
    assert "not now" in last
