"""The memory of a live cluster: what cycles write, and what they do with what they find."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from rebalancer.memory.document import KEY, Memory, OwnerStop, PastMove, Tripped, decoded, encoded
from rebalancer.run import watch
from tests.functional.objects import node, node_usage, pod, pod_usage
from tests.functional.test_usage import by_usage, low

RELIEF = {"source": "KubernetesMetrics", "selection": "relief", "scheduler": "unknown", "rest": "0s"}
POLICY = by_usage(low(RELIEF)) | {"trust": {"waitReady": False}}
NOW = datetime.now(UTC)


@pytest.fixture
def busy(server):
    server.add(node("n1"), node("n2"), *(pod(f"{app}-{n}", owner=app, age=9000 - n) for app in "ab" for n in (1, 2)))
    server.add(node_usage("n1", "3500m"))
    server.add(node_usage("n2", "100m"))
    for app in "ab":
        for n in (1, 2):
            server.add(pod_usage(f"{app}-{n}", "700m"))
    server.leases.remember({KEY: encoded(Memory(since=NOW - timedelta(days=9)))})
    return server


def remembered(server):
    return decoded(server.leases.memory(), datetime.now(UTC))


def past(owner, **fields):
    at = fields.pop("at", NOW - timedelta(minutes=20))
    return PastMove(at=at, cycle=at, namespace="default", owner=f"ReplicaSet/{owner}", **fields)


def test_the_next_cycle_leaves_these_owners_alone(busy, rebalancer):
    """It is written what was moved, from which node and where it was to go, and what was measured: also of a CronJob.

    A dry run writes nothing.
    """
    dry = rebalancer.run(busy, POLICY, "--dry-run")
    assert not busy.sent("PUT", "*configmaps*")

    first, second = rebalancer.run(busy, POLICY), rebalancer.run(busy, POLICY)

    moves = remembered(busy).moves
    assert first.evicted() == dry.evicted() == [f"default/{each.owner[-1]}-1" for each in moves]
    assert {(each.source, each.foretold, each.strategy) for each in moves} == {("n1", ("n2",), "LowNodeUtilization")}
    assert remembered(busy).readings[-1].nodes["n1"]["cpu"] == 87.5
    assert (second.evicted(), "BackOff" in second.refused().values()) == ([], True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({KEY: "no"}, "is corrupt"),
        ({KEY: encoded(Memory(since=NOW + timedelta(days=400)))}, "still to come"),
        ({KEY: encoded(Memory(version=9, since=NOW))}, "later version"),
        (None, "may not be read"),
    ],
)
def test_a_memory_that_cannot_be_used_makes_balance_strategies_rest(busy, rebalancer, data, said):
    """They say so; what is corrupt is begun anew, what a later version wrote stays as it is."""
    if data:
        busy.leases.remember(data)
    else:
        busy.forbid("get", "configmaps")

    outcome = rebalancer.run(busy, POLICY)

    assert (outcome.exit_code, outcome.evicted()) == (0, [])
    assert said in json.dumps(outcome.report["warnings"])
    assert (busy.leases.memory() == data) == ("version" in said)


def test_a_memory_that_is_absent_is_made(busy, rebalancer):
    del busy.leases.maps["kube-system", "kube-rebalancer-memory"]

    outcome = rebalancer.run(busy, POLICY)

    assert sorted(outcome.evicted()) == ["default/a-1", "default/b-1"]
    assert len(remembered(busy).moves) == 2


def test_what_others_write_meanwhile_is_kept(busy, rebalancer):
    """The write is tried again on what is there by then."""

    def interfere(_):
        busy.leases.remember({KEY: encoded(Memory(since=NOW - timedelta(days=9), moves=(past("z"),))), "pause": "{}"})
        busy.leases.maps["kube-system", "kube-rebalancer-memory"]["binaryData"] = {"logo": "AA=="}

    busy.on("PUT", "*configmaps*", interfere, times=1)

    rebalancer.run(busy, POLICY)

    assert sorted(each.owner[-1] for each in remembered(busy).moves) == ["a", "b", "z"]
    kept = busy.leases.maps["kube-system", "kube-rebalancer-memory"]
    assert (kept["data"]["pause"], kept["binaryData"]) == ("{}", {"logo": "AA=="})


@pytest.mark.parametrize("until", [NOW - timedelta(hours=1), None])
def test_what_is_reset_meanwhile_stays_reset(busy, rebalancer, monkeypatch, until):
    """The breaker, in the Lease too, and owners that were stopped: whoever has reset them was told so."""
    monkeypatch.setattr(watch, "_LOOK_AT_ALL_SECONDS", 0.0)
    long_ago, within = NOW - timedelta(days=9), timedelta(hours=1)
    stop = OwnerStop(namespace="default", owner="ReplicaSet/z", since=NOW - within, until=NOW + within)
    tripped = Tripped(since=until - within, until=until) if until else None
    busy.leases.remember({KEY: encoded(Memory(since=long_ago, stops=(stop,), breaker=tripped))})
    reset = encoded(Memory(since=long_ago, counted_from=NOW))
    busy.on("POST", "*/eviction", lambda _: busy.leases.remember({KEY: reset}), times=1)

    assert rebalancer.run(busy, POLICY).evicted()

    after = remembered(busy)
    assert (after.breaker, after.stops, after.counted_from) == (None, (), NOW)
    assert "kube-rebalancer/breaker" not in busy.leases.held["kube-system", "rebalancer"]["metadata"]["annotations"]


def test_a_memory_that_was_not_written_is_told(busy, rebalancer):
    """A page of a proxy is no ConfigMap, whatever its status says."""
    busy.fail("PUT", "*configmaps*", status=200, body="<html>Please log in</html>")

    outcome = rebalancer.run(busy, POLICY)

    assert len(outcome.evicted()) == 2
    assert any("what was moved is not remembered" in each for each in outcome.report["warnings"])


def test_a_lease_without_the_breaker_is_told(busy, rebalancer):
    """What was moved is remembered all the same."""
    tripped = Tripped(since=NOW - timedelta(hours=2), until=NOW - timedelta(hours=1))
    busy.leases.remember({KEY: encoded(Memory(since=NOW - timedelta(days=9), breaker=tripped))})
    busy.forbid("update", "leases.coordination.k8s.io")

    told = " ".join(rebalancer.run(busy, POLICY).report["warnings"])

    assert len(remembered(busy).moves) == 1
    assert "the Lease does not say whether the breaker is open: no permission" in told
    assert "not remembered" not in told


def lost(leases):
    leases.maps.clear()


def forged(leases):
    leases.remember({KEY: encoded(Memory(since=NOW + timedelta(days=999)))})


@pytest.mark.parametrize("happens", [lost, forged])
def test_a_memory_that_is_lost_or_forged_in_the_middle_holds_the_whole_run_at_its_end(busy, rebalancer, happens):
    """What was moved before and afterwards."""
    busy.on("POST", "*/eviction", lambda _: happens(busy.leases), times=1)

    outcome = rebalancer.run(busy, POLICY)

    assert len(outcome.evicted()) == 2
    assert [f"default/{each.owner[-1]}-1" for each in remembered(busy).moves] == outcome.evicted()


def test_a_snapshot_carries_the_memory(busy, rebalancer):
    busy.leases.remember({KEY: encoded(Memory(since=NOW - timedelta(days=9), moves=(past("a"),)))})
    path = rebalancer.folder / "cluster.json"
    rebalancer.at(busy, "snapshot", "--output", path)

    assert (
        rebalancer.offline(POLICY, path).evicted()
        == rebalancer.run(busy, POLICY, "--dry-run").evicted()
        == ["default/b-1"]
    )


def test_a_policy_of_the_descheduler_remembers_nothing(busy, rebalancer):
    rebalancer.run(busy, by_usage(low({"source": "KubernetesMetrics"})))

    assert not busy.sent("GET", "*configmaps*")
