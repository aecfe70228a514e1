"""Evicting through an API server that refuses, fails, or whose cluster has changed."""

import json

import pytest

from tests.functional.objects import OLD, pdb, policy

EVICTIONS = "*/eviction"
ONE, TWO = {"maxNoOfPodsToEvictTotal": 1}, {"maxNoOfPodsToEvictTotal": 2}
DENIED = 'admission webhook "guard.example.com" denied the request: not now'


def eviction_of(name):
    return f"*/pods/{name}/eviction"


@pytest.fixture
def evict(three, rebalancer):
    """Run live with limits."""
    return lambda *options, **top: rebalancer.run(three, policy(OLD, **top), *options)


def spend_budget_behind_our_back(server):
    """Another eviction uses up the PDB between the snapshot and ours."""
    server.on("POST", EVICTIONS, lambda _: server.add(pdb("web", allowed=0)), times=1)


def test_a_pdb_that_has_run_out_is_a_refusal(three, evict):
    """The server has the last word: no failure, not asked again, and the strategy goes on."""
    three.add(pdb("web", allowed=3))
    spend_budget_behind_our_back(three)

    outcome = evict(**TWO)

    assert outcome.exit_code == 0
    assert (outcome.evicted(), outcome.failed()) == ([], {})
    assert outcome.refused() == {"a": "PDB", "b": "PDB", "c": "PDB"}
    assert "disruption budget" in outcome.report["refusals"][0]["reason"]
    assert len(three.sent("POST", EVICTIONS)) == 3


def test_the_next_pod_goes_and_is_marked(three, evict):
    """What the dry run did not list only comes in by the server's refusal, and the report says so."""
    three.fail("POST", eviction_of("a"), status=400, message=DENIED)

    outcome = evict(**TWO)

    assert three.evicted == outcome.evicted() == ["default/b", "default/c"]
    assert outcome.refused() == {"a": "Webhook"}
    (warning,) = outcome.report["warnings"]
    assert warning.endswith("a dry run would not have listed them: default/c")


def test_a_refusal_that_brings_nobody_in_marks_nobody(three, evict):
    """Without a limit all three were listed."""
    three.fail("POST", eviction_of("a"), status=400, message=DENIED)

    assert evict(maxNoOfPodsToEvictTotal=9).report["warnings"] == []


def unknown(outcome):
    return [each["name"] for each in outcome.report["unknown"]]


def test_a_pod_that_is_gone_at_its_turn_counts_against_the_limit(three, evict):
    """A proxy may have sent the request before, so that it went by this run; the run is no failure for that."""
    three.on("POST", eviction_of("a"), lambda _: three.remove_pod("default", "a"))

    outcome = evict(**ONE)

    assert outcome.exit_code == 0
    assert unknown(outcome) == ["a"]
    assert three.evicted == outcome.evicted() == []


def test_a_proxy_that_repeats_requests_makes_no_run_exceed_its_limit(three, evict):
    """The first answer is lost, and the second is passed on: 404."""

    def first(request):
        three.process(request)

    three.on("POST", EVICTIONS, first)

    outcome = evict(**ONE)

    assert len(three.evicted) == 1
    assert unknown(outcome) == ["a"]


def test_a_pod_that_lost_its_owner_meanwhile_stays(three, evict):
    """Nothing would make it anew; the next one goes."""

    def orphan(_):
        bare = three.pod("a")
        three.add({**bare, "metadata": {**bare["metadata"], "ownerReferences": []}})

    three.on("POST", eviction_of("a"), orphan, times=1)

    outcome = evict(**ONE)

    assert outcome.refused()["a"] == "FailedBarePods"
    assert three.evicted == ["default/b"]


@pytest.mark.parametrize(("options", "exit_code"), [((), 0), (("--fail-on-error",), 1)])
def test_a_run_that_has_evicted_fails_only_on_demand(three, evict, options, exit_code):
    """A Job would start it again with fresh limits."""
    three.fail("POST", eviction_of("a"), status=422, message="no such thing")

    outcome = evict(*options, **ONE)

    assert outcome.exit_code == exit_code
    assert outcome.evicted() == ["default/b"]
    assert "no such thing" in outcome.failed()["a"]


# Events


def test_every_eviction_has_its_event_before_the_program_ends(three, evict):
    """With the strategy as the reason, the pod regarding, and why in the note."""
    outcome = evict(**TWO)

    assert [event["regarding"]["name"] for event in three.events] == ["a", "b"]
    event, eviction = three.events[0], outcome.report["evictions"][0]
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "PodLifeTime", "Descheduled")
    assert event["reportingController"] == "kube-rebalancer"
    assert event["metadata"]["namespace"] == "default"
    assert event["regarding"]["uid"] == eviction["uid"]
    assert eviction["reason"] in event["note"]
    assert "pod eviction from n1 node" in event["note"]


def test_events_that_are_not_delivered_are_a_warning(three, evict):
    """They do not make the run fail."""
    three.forbid("create", "events.events.k8s.io")

    outcome = evict(**TWO)

    assert outcome.exit_code == 0
    assert len(outcome.evicted()) == 2
    (warning,) = outcome.report["warnings"]
    assert warning.startswith("2 Events were not delivered")
    assert "create events.events.k8s.io" in warning


@pytest.mark.parametrize("wanted", [False, True])
def test_refusals_and_failures_have_events_on_demand(three, evict, wanted):
    """evictionFailureEventNotification: one Warning for each."""
    three.fail("POST", eviction_of("a"), status=400, message=DENIED)
    three.fail("POST", eviction_of("b"), status=422, message="no such thing")

    evict(**TWO, evictionFailureEventNotification=wanted)

    warnings = {each["regarding"]["name"]: each for each in three.events if each["type"] == "Warning"}
    assert set(warnings) == ({"a", "b"} if wanted else set())
    assert {each["reason"] for each in warnings.values()} <= {"EvictionFailed"}
    assert not wanted or ("denied the request" in warnings["a"]["note"] and "no such thing" in warnings["b"]["note"])
    assert [each["regarding"]["name"] for each in three.events if each["type"] == "Normal"] == ["c"]


def test_the_limit_has_an_event_on_demand(three, evict):
    """In the descheduler's words."""
    evict(**ONE, evictionFailureEventNotification=True)

    (warning,) = [each for each in three.events if each["type"] == "Warning"]
    assert warning["regarding"]["name"] == "b"
    assert "total eviction limit exceeded" in json.dumps(warning["note"])
