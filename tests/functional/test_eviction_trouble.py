"""Evicting through an API server that refuses, forbids, fails, leaves in doubt, or whose cluster has changed."""

import pytest

from tests.attack.whims import ANNOTATIONS
from tests.fake_http import Reply
from tests.functional.objects import OLD, old_pods, pdb, pod, policy, two_nodes_with

EVICTIONS = "*/eviction"
ONE, TWO = {"maxNoOfPodsToEvictTotal": 1}, {"maxNoOfPodsToEvictTotal": 2}
NO_PERMISSION = (
    """give the program's role the rule {apiGroups: [""], resources: [pods/eviction], verbs: [create]}; """
    "`rebalancer doctor` names all that it lacks"
)
DENIED = 'admission webhook "guard.example.com" denied the request: not now'


def eviction_of(name):
    return f"*/pods/{name}/eviction"


@pytest.fixture
def evict(three, rebalancer):
    return lambda *options, **top: rebalancer.run(three, policy(OLD, **top), *options)


def test_a_pdb_that_has_run_out_is_a_refusal(three, evict):
    """Another eviction spends it after the snapshot: no failure, not asked again, and the strategy goes on."""
    three.add(pdb("web", allowed=3))
    three.on("POST", EVICTIONS, lambda _: three.add(pdb("web", allowed=0)), times=1)

    outcome = evict(**TWO)

    assert outcome.exit_code == 0
    assert (outcome.evicted(), outcome.failed()) == ([], {})
    assert outcome.refused() == {"a": "PDB", "b": "PDB", "c": "PDB"}
    assert "disruption budget" in outcome.report["refusals"][0]["reason"]
    assert len(three.sent("POST", EVICTIONS)) == 3


BOTH = ("request-evict-only", "eviction-in-progress")


@pytest.mark.parametrize(
    ("changed", "by"),
    [
        ({"ownerReferences": []}, "FailedBarePods"),
        ({"ownerReferences": pod("z", owner="lonely")["metadata"]["ownerReferences"]}, "MinReplicas"),
        ({"annotations": {f"{ANNOTATIONS}/{each}": "" for each in BOTH}}, "InProgress"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "DoNotDisrupt"),
        ({"labels": {"app": "db"}}, "PDB"),
    ],
)
def test_a_pod_that_has_changed_meanwhile_is_asked_about_again(three, rebalancer, changed, by):
    """Nothing would make it anew, too few are left, another controller moves it, its user wants it left alone, or a PDB
    that allowed nothing has it.

    The next one goes.
    """
    three.add(pdb("db", allowed=0, app="db"))

    def change(_):
        found = three.pod("a")
        three.add(pdb("db", allowed=9, app="db"))
        three.add({**found, "metadata": {**found["metadata"], **changed}})

    three.on("POST", eviction_of("a"), change, times=1)

    trust = {"doNotDisrupt": "all", "waitReady": False}
    outcome = rebalancer.run(three, policy(OLD, evictor={"minReplicas": 2}, trust=trust, **ONE))

    assert outcome.refused()["a"] == by
    assert three.evicted == ["default/b"]


@pytest.mark.parametrize(("options", "exit_code"), [((), 0), (("--fail-on-error",), 1)])
def test_a_run_that_has_evicted_fails_only_on_demand(three, evict, options, exit_code):
    """A Job would start it again with fresh limits."""
    three.fail("POST", eviction_of("a"), status=422, message="no such thing")

    outcome = evict(*options, **ONE)

    assert outcome.exit_code == exit_code
    assert outcome.evicted() == ["default/b"]
    assert "no such thing" in outcome.failed()["a"]


def test_five_namespaces_without_permission_end_the_run(server, rebalancer):
    """One request in each; the report and standard error say what to add to the role."""
    server.add(*two_nodes_with(), *(pod(f"p{place}", namespace=f"n{n}") for n in range(7) for place in range(3)))
    server.forbid("create", "pods/eviction")

    limited = policy(OLD, maxNoOfPodsToEvictTotal=500)

    outcome = rebalancer.run(server, limited)

    asked = [request.path.split("/")[4] for request in server.sent("POST", EVICTIONS)]
    assert outcome.exit_code == 1
    assert len(asked) == len(set(asked)) == 5
    notice = f"no permission to create pods/eviction in namespaces {', '.join(sorted(asked))}: {NO_PERMISSION}"
    assert outcome.report["strategies"][0]["error"] == notice
    assert outcome.report["warnings"] == [notice]
    assert outcome.stderr.splitlines()[-1].endswith(notice)
    lines = rebalancer(*rebalancer.arguments(server, limited), "--output", "table").stdout.splitlines()
    assert lines[0].startswith("FAILED: 1 of 1 strategy (PodLifeTime: no permission to create pods/eviction in names")
    assert lines[-1].startswith("Warning: no permission to create pods/eviction in namespaces ")
    assert lines[-1].endswith(NO_PERMISSION)


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
    three.forbid("create", "events.events.k8s.io")

    outcome = evict(**TWO)

    assert outcome.exit_code == 0
    assert len(outcome.evicted()) == 2
    (warning,) = outcome.report["warnings"]
    assert warning.startswith("2 Events were not delivered")
    assert "create events.events.k8s.io" in warning


@pytest.mark.parametrize("wanted", [False, True])
def test_refusals_failures_and_limits_have_events_on_demand(three, evict, wanted):
    """evictionFailureEventNotification: one Warning for each, the limit's in the descheduler's words."""
    three.fail("POST", eviction_of("a"), status=400, message=DENIED)
    three.fail("POST", eviction_of("b"), status=422, message="no such thing")
    three.add(pod("d", age=100))

    evict(**ONE, evictionFailureEventNotification=wanted)

    notes = {each["regarding"]["name"]: each["note"] for each in three.events if each["type"] == "Warning"}
    assert set(notes) == ({"a", "b", "d"} if wanted else set())
    assert {each["reason"] for each in three.events} == {"PodLifeTime"} | ({"EvictionFailed"} if wanted else set())
    words = {"a": "denied the request", "b": "no such thing", "d": "total eviction limit exceeded"}
    assert all(words[name] in note for name, note in notes.items())
    assert [each["regarding"]["name"] for each in three.events if each["type"] == "Normal"] == ["c"]


# Doubts


@pytest.fixture
def twelve(server):
    server.add(*two_nodes_with(*old_pods(*(f"p{number:02d}" for number in range(12)))))
    return server


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
