"""Whole runs in which nobody can tell what became of an eviction, or in which others carry it out."""

import pytest

from tests.fake_http import Reply
from tests.functional.objects import OLD, old_pods, pdb, policy, two_nodes_with

EVICTIONS = "*/eviction"


@pytest.fixture
def twelve(server):
    server.add(*two_nodes_with(*old_pods(*(f"p{number:02d}" for number in range(12)))))
    return server


@pytest.mark.parametrize("status", [500, 503])
def test_a_limit_holds_where_every_answer_is_lost(twelve, rebalancer, status):

    def lose(request):
        twelve.process(request)
        return Reply(status, {"kind": "Status", "message": "etcdserver: request timed out"})

    twelve.on("POST", EVICTIONS, lose)

    outcome = rebalancer.run(twelve, policy(OLD, maxNoOfPodsToEvictTotal=3))

    assert outcome.evicted() == ["default/p00", "default/p01", "default/p02"]
    assert len(twelve.pod_names()) == 9
    assert (outcome.exit_code, outcome.report["unknown"], outcome.report["failures"]) == (0, [], [])


@pytest.fixture
def hopeless(twelve):
    """Every first answer is lost, a second try hears of a webhook's no, and pods may not be looked at."""
    twelve.forbid("get", "pods")
    lost = set()

    def answer(request):
        if request.path in lost:
            return Reply(400, {"kind": "Status", "message": 'admission webhook "w" denied the request: no'})
        lost.add(request.path)
        twelve.process(request)
        return Reply(500, {"kind": "Status", "message": "etcdserver: request timed out"})

    twelve.on("POST", EVICTIONS, answer)
    return twelve


@pytest.mark.parametrize(
    "limit", [{"maxNoOfPodsToEvictTotal": 2}, {"maxNoOfPodsToEvictPerNode": 2}, {"maxNoOfPodsToEvictPerNamespace": 2}]
)
def test_what_stays_unknown_counts_against_each_limit(hopeless, rebalancer, limit):
    """Two pods may have gone, so nothing else is asked for; not by a second profile either."""
    rules = policy(OLD, **limit)
    rules["profiles"].append({**rules["profiles"][0], "name": "again"})

    outcome = rebalancer.run(hopeless, rules)

    assert [each["name"] for each in outcome.report["unknown"]] == ["p00", "p01"]
    assert {request.path.split("/")[-2] for request in hopeless.sent("POST", EVICTIONS)} == {"p00", "p01"}
    assert [run["unknown"] for run in outcome.report["strategies"]] == [2, 0]


def test_what_stays_unknown_counts_against_a_pdb(hopeless, rebalancer):
    """The PDB allows one disruption, and one may have happened."""
    hopeless.add(pdb("web", allowed=1))

    outcome = rebalancer.run(hopeless, policy(OLD))

    assert [each["name"] for each in outcome.report["unknown"]] == ["p00"]
    assert set(outcome.refused().values()) == {"PDB"}


@pytest.mark.parametrize(("options", "exit_code"), [((), 0), (("--fail-on-error",), 1)])
def test_a_run_with_a_doubt_fails_only_on_demand(hopeless, rebalancer, options, exit_code):
    """A Job that was started again would have fresh limits, and the pod may have gone."""
    outcome = rebalancer.run(hopeless, policy(OLD, maxNoOfPodsToEvictTotal=1), *options)

    (unknown,) = outcome.report["unknown"]
    assert outcome.exit_code == exit_code
    assert outcome.evicted() == []
    assert outcome.report["failures"] == []
    assert "the pod may have been evicted all the same" in unknown["error"]
    assert "perhaps evicted: default/p00" in outcome.stderr
    (event,) = hopeless.events
    assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "EvictionUnknown", "p00")


def test_what_another_controller_takes_over_is_spent(twelve, rebalancer):
    """With a limit of two, two requests are sent; the report tells them from evictions that have happened."""
    twelve.fail("POST", EVICTIONS, status=429, message="Eviction triggered evacuation of a machine")

    outcome = rebalancer.run(twelve, policy(OLD, maxNoOfPodsToEvictTotal=2))

    assert len(twelve.sent("POST", EVICTIONS)) == 2
    assert [each["background"] for each in outcome.report["evictions"]] == [True, True]
