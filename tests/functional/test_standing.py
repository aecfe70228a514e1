"""What a person says and asks between runs: `memory`, `pause`, `resume`, `status`, `breaker`."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.memory.document import KEY, Memory, OwnerStop, PastMove, Tripped, encoded
from tests.functional.objects import node, pod, policy
from tests.functional.test_memory import remembered
from tests.functional.test_watch import FAILED_PODS, TRUST, annotate

NOW = datetime.now(UTC)
SOON = NOW + timedelta(hours=1)


def past(owner):
    return PastMove(at=NOW, cycle=NOW, namespace="shop", owner=owner, failed="NotReady")


@pytest.fixture
def known(server):
    """A cluster with a memory: two owners were moved, one is stopped, and the breaker is open."""
    stop = OwnerStop(namespace="shop", owner="Deployment/web", since=NOW, until=SOON, why="CrashLoopBackOff")
    moves = tuple(past(owner) for owner in ("Deployment/web", "Deployment/db"))
    tripped = Tripped(since=NOW, until=SOON, why="three owners")
    memory = Memory(since=NOW - timedelta(days=3), moves=moves, stops=(stop,), breaker=tripped)
    server.leases.remember({KEY: encoded(memory)})
    server.add(node("n1"), node("n2"), pod("a", restarts=5))
    server.add({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default", "resourceVersion": "7"}})
    annotate(server, "ReplicaSet", "web", other="stays")
    return server


@pytest.fixture
def say(known, rebalancer):
    """Runs a command on that cluster, and returns what it prints."""

    def run(*words):
        outcome = rebalancer.at(known, *words)
        assert outcome.exit_code == 0, outcome.stderr
        return outcome.stdout

    return run


def test_the_memory_can_be_read_and_forgotten(say, known, rebalancer):
    """As JSON; of one owner or of all; a name that was mistyped clears nothing."""
    shown = json.loads(say("memory", "show"))
    assert [each["owner"] for each in shown["moves"]] == ["Deployment/web", "Deployment/db"]
    assert (shown["stops"][0]["why"], shown["breaker"]["why"]) == ("CrashLoopBackOff", "three owners")

    mistyped = rebalancer.at(known, "memory", "clear", "shop/web")
    assert (mistyped.exit_code, "shop/Deployment/web" in mistyped.stderr) == (2, True)

    say("memory", "clear", "shop/Deployment/web")
    assert [each.owner for each in remembered(known).moves] == ["Deployment/db"]
    assert (remembered(known).stops, bool(remembered(known).breaker)) == ((), True)

    say("memory", "clear")
    assert remembered(known).moves == ()
    # It has just begun, so that the next cycles are careful.
    assert remembered(known).since > NOW - timedelta(minutes=1)


def test_the_breaker_can_be_closed(say, known, rebalancer):
    """The failures before do not open it again."""
    assert "open" in say("status")

    say("breaker", "reset")

    assert "the breaker is closed" in say("status")
    outcome = rebalancer.run(known, policy(FAILED_PODS, trust=TRUST), "--dry-run")
    assert outcome.evicted() == ["default/a"]


@pytest.mark.parametrize("where", [(), ("-n", "default"), ("-n", "default", "--owner", "ReplicaSet/web")])
def test_a_pause_holds_until_it_is_ended(say, known, rebalancer, where):
    """Of all, which outlives the memory, of a namespace, of an owner; `status` tells of it."""
    say("breaker", "reset")
    plan = policy(FAILED_PODS, trust=TRUST)

    said = say("pause", *where, "--for", "2h", "--reason", "load test")
    assert "load test" in said
    assert said.strip() in say("status")
    assert rebalancer.run(known, plan).evicted() == rebalancer.run(known, plan, "--dry-run").evicted() == []
    if not where:
        known.leases.maps.clear()
        assert rebalancer.run(known, plan).report["skipped"].startswith("all is paused")
        say("snapshot", "--output", file := rebalancer.folder / "cluster.json")
        assert rebalancer.offline(plan, file).report["skipped"].startswith("all is paused")

    say("resume", *where)
    assert "load test" not in say("status")
    assert rebalancer.run(known, plan, "--dry-run").evicted() == ["default/a"]


def test_who_does_not_heed_a_pause_is_said(known, rebalancer):
    """Somebody relies on it; and a pause of no seconds would last for ever."""
    said, nothing = (rebalancer.at(known, "pause", *more) for more in ([], ["--for", "0s"]))

    assert (said.exit_code, "without `trust`, do not heed it" in said.stderr) == (0, True)
    assert (nothing.exit_code, "--for is more than 0" in nothing.stderr) == (2, True)
    assert rebalancer.run(known, policy(FAILED_PODS), "--dry-run").evicted() == ["default/a"]


@pytest.mark.parametrize(
    "words", [("resume", "-n", ""), ("resume", "--owner", "ReplicaSet/web"), ("memory", "clear", "")], ids=" ".join
)
def test_a_variable_that_is_not_set_does_not_stand_for_all(say, known, rebalancer, words):
    """`resume -n "$NAMESPACE"` would end the pause of all runs."""
    say("pause")

    outcome = rebalancer.at(known, *words)

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert (len(remembered(known).moves), "all is paused" in say("status")) == (2, True)


def test_a_pause_that_could_not_be_ended_is_said(say, known, rebalancer):
    say("pause")
    known.fail("PUT", "*configmaps*", status=409)

    outcome = rebalancer.at(known, "resume")

    assert (outcome.exit_code, "the pause was not written: others write" in outcome.stderr) == (3, True)


@pytest.mark.parametrize("status", [409, 422])
def test_a_pause_is_written_though_others_write_too(say, known, status):
    known.fail("PATCH", "/api/v1/namespaces/default", status=status, times=1)

    assert say("pause", "-n", "default").strip() in say("status")


def test_a_pause_that_the_server_does_not_take_is_no_matter_of_others(known, rebalancer):
    invalid = {"kind": "Status", "message": "Too long", "details": {"causes": [{"reason": "FieldValueTooLong"}]}}
    known.fail("PATCH", "/api/v1/namespaces/default", status=422, body=invalid)

    outcome = rebalancer.at(known, "pause", "-n", "default")

    assert (outcome.exit_code, "default: Too long" in outcome.stderr) == (3, True)


PAGE = {"status": 200, "body": "<html>Please log in</html>"}


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_page_of_a_proxy_is_no_pause(known, rebalancer, method):
    """Whoever is told that it is paused goes on to the load test."""
    known.fail(method, "/api/v1/namespaces/default", **PAGE)

    outcome = rebalancer.at(known, "pause", "-n", "default", "--for", "2h")

    assert (outcome.exit_code, outcome.stdout) == (3, "")
    assert "the API server does not answer" in outcome.stderr


@pytest.mark.parametrize("answer", [PAGE, {"status": 200, "body": {"kind": "NamespaceList", "items": [{}]}}])
def test_what_cannot_be_read_is_said_and_no_reason_to_end(say, known, answer):
    known.fail("GET", "/api/v1/namespaces", **answer)

    assert "what is paused is not known in full" in say("status")


def test_a_memory_that_cannot_be_read_hides_no_pause(say, known):
    say("pause")
    known.leases.remember({KEY: "no"})

    assert "memory kube-system/kube-rebalancer-memory is corrupt" in (told := say("status"))
    assert "all is paused" in told


@pytest.mark.parametrize(
    ("command", "names_policy"),
    [
        (("doctor", "-o", "json"), True),
        (("plan",), True),
        (("explain", "default/a", "-o", "json"), True),
        (("diff", "demo", "demo"), False),
        (("report",), False),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
def test_what_only_looks_reads_the_memory_of_a_release_that_has_its_own(known, rebalancer, command, names_policy):
    """The chart names it after the release.  `diff` makes two plans, and `report` says what each preset would do."""
    known.leases.maps["kube-system", "mine-memory"] = known.leases.maps.pop(("kube-system", "kube-rebalancer-memory"))
    asked = ("--policy", rebalancer.policy(policy(FAILED_PODS, trust=TRUST))) if names_policy else ()
    found = '"open: three owners"' if command[0] == "doctor" else "the breaker is open"

    told = [rebalancer.at(known, *command, *asked, *more) for more in ((), ("--memory", "mine-memory"))]

    assert [found in each.stdout + each.stderr for each in told] == [False, True], told

    file = rebalancer.folder / "cluster.json"
    rebalancer.at(known, "snapshot", "--memory", "mine-memory", "--output", file)
    offline = rebalancer(*command, *asked, "--snapshot", file)
    assert command[0] == "doctor" or found in offline.stdout + offline.stderr, offline
