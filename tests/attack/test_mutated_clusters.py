"""Random clusters and random policies: a dry run tells the truth, order does not matter, and limits and PDBs hold."""

import json
from random import Random

import pytest

from tests.attack.random_clusters import cluster, policy
from tests.attack.seeds import seeds
from tests.attack.whims import exceeded


@pytest.mark.parametrize("seed", seeds(20))
def test_a_live_run_does_what_the_dry_run_said_and_no_more_than_it_may(rebalancer, server, seed):
    """The same pods in the same order and the same refusals, within the limits and the PDBs."""
    dice = Random(seed)
    objects, rules = cluster(dice), policy(dice)
    rules["trust"] = {"enabled": dice.random() < 0.5, "waitReady": False}  # here nothing replaces a pod that goes
    for each in objects:
        server.add(json.loads(json.dumps(each)))  # the server counts its PDBs down

    dry = rebalancer.run(server, rules, "--dry-run")
    assert server.evicted == []
    live = rebalancer.run(server, rules)

    assert (dry.exit_code, live.exit_code) == (0, 0), [each.get("error") for each in dry.report["strategies"]]
    assert server.evicted == live.evicted() == dry.evicted()
    assert refusals(live) == refusals(dry)
    assert len(server.sent("POST", "*/eviction")) == len(server.evicted)
    pods = {
        f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in objects if each["kind"] == "Pod"
    }
    assert not list(exceeded(objects, rules, [pods[name] for name in server.evicted]))


def refusals(outcome):
    """Who was refused what, by whom; the words may tell an age, which grows from run to run."""
    return [{**each, "reason": "", "cause": each["cause"]["code"]} for each in outcome.report["refusals"]]


@pytest.mark.parametrize("seed", seeds(20))
def test_the_order_of_a_file_changes_nothing(rebalancer, tmp_path, seed):
    """The same objects in another order give the same report, to the letter."""
    dice = Random(seed)
    objects, rules = cluster(dice), policy(dice)
    path = tmp_path / "cluster.json"
    reports = []
    for _ in range(3):
        path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
        command = ("run", "--policy", rebalancer.policy(rules), "--snapshot", path, "--output", "json")
        outcome = rebalancer(*command)
        assert outcome.exit_code == 0, outcome.stdout
        report = outcome.report
        for each in report["strategies"]:
            del each["seconds"]
        reports.append(report)
        dice.shuffle(objects)

    assert reports[0] == reports[1] == reports[2]
