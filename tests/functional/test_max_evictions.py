"""`--max-evictions`: a limit from the command line, with the policy's own."""

import json

import pytest

from tests.functional.objects import OLD, policy


@pytest.mark.parametrize(("total", "most", "evicted"), [(None, 2, 2), (1, 2, 1), (2, 1, 1), (0, 2, 0), (None, 0, 0)])
def test_the_smaller_limit_counts(three, rebalancer, total, most, evicted):
    """It never allows more than the policy does; 0 evicts nothing."""
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
    kubeconfig = three.kubeconfig(rebalancer.folder)

    outcome = rebalancer("run", "--yes", "--policy", twice, "--kubeconfig", kubeconfig)

    first, last = outcome.stderr.splitlines()
    assert f" WARNING rebalancer.run.start: policy {twice}: " in first
    assert "maxNoOfPodsToEvictTotal" in first
    assert "not now" in last
