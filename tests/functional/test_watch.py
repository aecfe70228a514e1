"""What is looked at again within a live cycle: pauses, windows, and whether replacements become Ready."""

import json
import signal
from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.run import watch
from tests.functional.objects import node, pod, policy
from tests.functional.test_memory import remembered

FAILED_PODS = ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 1})
TRUST = {"readyWithin": "10s"}
LATER = {"until": (datetime.now(UTC) + timedelta(hours=2)).isoformat(), "reason": "load test"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nothing is believed for a while, and no wait takes time."""
    monkeypatch.setattr(watch, "_BELIEVED_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_LOOK_AT_ALL_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_LOOK_SECONDS", 0.01)


@pytest.fixture
def restarting(server):
    """Four pods of `web`, and two of `db`, that restart all the time."""
    server.add(node("n1"))
    server.add(node("n2"))
    for number, owner in enumerate(("web", "web", "web", "web", "db", "db")):
        server.add(pod(f"{owner}-{number}", owner=owner, restarts=5, age=9000 - number))
    server.add({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}})
    return server


def ready(name, owner):
    return pod(f"new-{name}", "n2", uid=f"new-{name}", owner=owner, age=0)


def replace_with(server, make, before=lambda: None):
    """Let each pod that is evicted be replaced, after something else has happened."""

    def act(request):
        before()
        name = request.path.split("/")[-2]
        answer = server.process(request)
        server.remove_pod("default", name)
        server.add(make(name, name.split("-")[0]))
        return answer

    server.on("POST", "*/eviction", act)


def run(rebalancer, server, **top):
    return rebalancer.run(server, policy(FAILED_PODS, **({"trust": TRUST} | top)))


def annotate(server, kind, name, **notes):
    found = {
        "name": name,
        "resourceVersion": "7",
        "annotations": {f"kube-rebalancer/{key}": text for key, text in notes.items()},
    }
    where = ("v1", {}) if kind == "Namespace" else ("apps/v1", {"namespace": "default"})
    server.add({"kind": kind, "apiVersion": where[0], "metadata": {**where[1], **found}})


def pauses():
    """By name, what pauses the pods of `web` once the first of them has gone, and whether it pauses all others too."""
    later = json.dumps(LATER)
    return {
        "all, by the ConfigMap": (lambda server: server.leases.remember({"pause": later}), True),
        "all, by the Lease": (lambda server: server.leases.note("kube-rebalancer/pause", later), True),
        "the namespace": (lambda server: annotate(server, "Namespace", "default", pause=later), True),
        "the owner": (lambda server: annotate(server, "ReplicaSet", "web", pause=later), False),
        "its window": (lambda server: annotate(server, "ReplicaSet", "web", window="0 0 29 2 *; 1m"), False),
        "what cannot be read": (lambda server: annotate(server, "ReplicaSet", "web", pause="{"), False),
    }


@pytest.mark.parametrize(("pause", "of_all"), pauses().values(), ids=pauses())
def test_a_pause_holds_within_the_cycle(restarting, rebalancer, pause, of_all):
    """Whoever is paused loses no pod after it; others go on; the run has not failed."""
    seen = []
    replace_with(restarting, ready, before=lambda: seen or seen.append(pause(restarting)))

    outcome = rebalancer.run(restarting, policy(FAILED_PODS, trust=TRUST), "--fail-on-error")

    assert outcome.exit_code == 0
    assert outcome.evicted() == ["default/web-0", *([] if of_all else ["default/db-4", "default/db-5"])]


@pytest.mark.parametrize("label", ["pod-template-hash", "rollouts-pod-template-hash"])
def test_a_pause_of_a_replica_set_holds_whatever_owns_that(restarting, rebalancer, label):
    """Its pods count as those of its Deployment, or of a Rollout, which cannot be paused itself."""
    for number in range(3):
        made = pod(f"shop-{number}", owner="shop-5d9", restarts=5, age=99_999 - number)
        made["metadata"]["labels"][label] = "5d9"
        restarting.add(made)
    pause = json.dumps(LATER)
    replace_with(restarting, ready, before=lambda: annotate(restarting, "ReplicaSet", "shop-5d9", pause=pause))

    outcome = run(rebalancer, restarting)
    dry = rebalancer.run(restarting, policy(FAILED_PODS, trust=TRUST), "--dry-run")

    assert [each for each in outcome.evicted() if "shop" in each] == ["default/shop-0"]
    assert {each.refused()[f"shop-{number}"] for each in (outcome, dry) for number in (1, 2)} == {"Paused"}


def test_an_owner_whose_replacement_is_not_ready_keeps_no_other_waiting(restarting, rebalancer):
    """With several requests in flight: here the replacement of the first pod comes as the last one goes."""
    for name in ("web-2", "web-3", "db-5"):
        restarting.remove_pod("default", name)

    def replace(request):
        answer, name = restarting.process(request), request.path.split("/")[-2]
        restarting.remove_pod("default", name)
        for each in {"web-0": [], "db-4": ["web-0"]}.get(name, [name]):
            restarting.add(ready(each, each.split("-")[0]))
        return answer

    restarting.on("POST", "*/eviction", replace)

    outcome = rebalancer.run(restarting, policy(FAILED_PODS, trust=TRUST), "--max-parallel", "4")

    assert outcome.evicted() == ["default/web-0", "default/web-1", "default/db-4"]


def test_a_pause_that_was_seen_holds_where_it_cannot_be_looked_at_again(restarting, rebalancer):
    """The namespace is read again before each eviction."""

    def pause():
        annotate(restarting, "Namespace", "default", pause=json.dumps(LATER))
        restarting.on("GET", "/api/v1/namespaces", restarting.process, times=1)
        restarting.fail("GET", "/api/v1/namespaces", status=400)

    replace_with(restarting, ready, before=pause)

    outcome = run(rebalancer, restarting)

    assert (outcome.evicted(), set(outcome.refused().values())) == (["default/web-0"], {"Paused"})


def test_after_a_signal_nothing_is_looked_at_before_the_next_eviction(restarting, rebalancer):
    """The seconds until SIGKILL are for what was begun."""
    seen = []

    def interrupt():
        seen.append(len(restarting.requests))
        signal.raise_signal(signal.SIGTERM)

    replace_with(restarting, ready, before=interrupt)

    outcome = run(rebalancer, restarting)

    assert (outcome.exit_code, outcome.evicted()) == (143, ["default/web-0"])
    assert {each.path.rpartition("/")[2] for each in restarting.requests[seen[0] :] if each.method == "GET"} == {
        "kube-rebalancer-memory"
    }


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("trust", [TRUST, None])
def test_a_run_outside_its_window_ends_at_once(restarting, rebalancer, dry, trust):
    """Exit code 0, it says when the next one opens, and asks nothing of the cluster."""
    window = {"cron": "0 0 29 2 *", "for": "1m", "timezone": "Asia/Shanghai"}

    outcome = rebalancer.run(restarting, policy(FAILED_PODS, windows=[window], trust=trust), *dry)

    assert (outcome.exit_code, outcome.evicted()) == (0, [])
    assert "outside the windows; the next one opens at 20" in outcome.report["skipped"]


def test_an_owner_waits_for_its_last_replacement(restarting, rebalancer):
    """Its next pod goes when that is Ready, which two looks do not see; no owner lacks two pods at once."""
    away, most = set(), []

    def late(name, owner):
        away.add(name)
        most.append(sum(each.startswith(owner) for each in away))
        return pod(f"new-{name}", "n2", uid=f"new-{name}", owner=owner, age=0, ready=False)

    looks = []

    def look(request):
        looks.append(request.path)
        if len(looks) % 3 == 0:
            for name in list(away):
                restarting.add(ready(name, name.split("-")[0]))
                away.discard(name)

    replace_with(restarting, late)
    restarting.on("GET", "/api/v1/namespaces/default/pods", look)

    outcome = run(rebalancer, restarting)

    assert len(outcome.evicted()) == 6
    assert max(most) == 1


def crashing(name, owner):
    made = pod(f"new-{name}", "n2", uid=f"new-{name}", owner=owner, age=0, ready=False)
    made["status"]["containerStatuses"] = [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    return made


def test_an_owner_whose_replacement_crashes_loses_no_more(restarting, rebalancer):
    """The others go on, and the next cycle knows."""
    replace_with(restarting, lambda name, owner: (crashing if owner == "web" else ready)(name, owner))

    outcome = run(rebalancer, restarting)
    again = run(rebalancer, restarting)

    assert outcome.evicted() == ["default/web-0", "default/db-4", "default/db-5"]
    assert set(outcome.refused().values()) == {"NotReady"}
    assert (again.evicted(), set(again.refused().values())) == ([], {"OwnerStopped"})
    assert [each.why for each in remembered(restarting).stops] == ["CrashLoopBackOff"]


def test_pods_that_have_ended_are_not_waited_for(restarting, rebalancer):
    """Their owner has replaced them long ago, so nothing comes for them."""
    for number in range(3):
        restarting.add(pod(f"gone-{number}", owner="gone", phase="Failed", ready=False, age=9000))

    outcome = rebalancer.run(restarting, policy(("RemoveFailedPods", {}), trust=TRUST | {"maxPerOwner": 1}))

    assert outcome.evicted() == [f"default/gone-{number}" for number in range(3)]


def test_pods_that_were_not_ready_are_not_held_against_their_owner(restarting, rebalancer):
    """They crashed before they were moved; it is not the moves that do harm."""
    for owner in "abcd":
        restarting.add(pod(f"{owner}-1", owner=owner, restarts=5, age=100, ready=False))
        restarting.add(pod(f"{owner}-2", owner=owner, restarts=5, age=90, ready=False))
    for number, owner in enumerate(("web", "web", "web", "web", "db", "db")):
        restarting.remove_pod("default", f"{owner}-{number}")
    replace_with(restarting, crashing)

    assert len(run(rebalancer, restarting).evicted()) == 8
    assert remembered(restarting).stops == ()


def test_three_owners_that_crash_open_the_breaker(restarting, rebalancer):
    """The run ends, and so does the next one; both succeed, and the Lease says so too."""
    for owner in "abcd":
        restarting.add(pod(f"{owner}-1", owner=owner, restarts=5, age=100))
        restarting.add(pod(f"{owner}-2", owner=owner, restarts=5, age=90))
    replace_with(restarting, crashing)

    outcome = run(rebalancer, restarting)
    again = run(rebalancer, restarting)

    assert outcome.exit_code == again.exit_code == 0
    assert len({each.split("-")[0] for each in outcome.evicted()}) == 3
    assert "the breaker is open: replacements of 3 owners fail" in again.report["skipped"]
    assert [each["reason"] for each in restarting.events].count("BreakerOpen") == 1
    assert "kube-rebalancer/breaker" in restarting.leases.held["kube-system", "rebalancer"]["metadata"]["annotations"]

    restarting.leases.maps.clear()  # what the memory knew is lost, the breaker is not
    assert "the breaker is open" in run(rebalancer, restarting).report["skipped"]
