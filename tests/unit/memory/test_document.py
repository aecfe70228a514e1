"""The memory is small, and what was tampered with is not believed."""

import base64
import gzip
from datetime import timedelta
from random import Random
from types import SimpleNamespace

import msgspec
import pytest

from rebalancer.cluster.pod import Condition
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.eviction.verdict import Granted
from rebalancer.memory.document import (
    KEY,
    LARGEST,
    Memory,
    NewerMemory,
    OwnerStop,
    Reading,
    Tripped,
    decoded,
    encoded,
    owner_of,
)
from rebalancer.memory.settling import settled
from rebalancer.run.memory import past_move, readings
from rebalancer.untrusted.documents import Unreadable
from tests import make
from tests.unit.memory.memories import ago, memory, move


def packed(document: object) -> dict[str, str]:
    return {KEY: base64.b64encode(gzip.compress(msgspec.json.encode(document))).decode()}


def plain(of: Memory) -> dict:
    return msgspec.json.decode(msgspec.json.encode(of))


FULL = memory(
    move(at=ago(hours=1), pod="a", source="n1", foretold=("n2", "n3"), landed="n2", ready=ago(minutes=59)),
    stops=(OwnerStop(namespace="default", owner="ReplicaSet/web", since=ago(hours=1), until=ago(hours=-1)),),
    readings=(Reading(ago(hours=1), {"n1": {"cpu": 71.5}}),),
    breaker=Tripped(since=ago(minutes=5), until=ago(minutes=-55), why="three owners"),
)


def test_what_was_written_is_read_again():
    assert decoded({KEY: encoded(FULL)}, make.NOW) == FULL
    assert decoded({}, make.NOW) is None


@pytest.mark.parametrize(
    ("moves", "readings", "nodes", "left"),
    [(2_000, 14, 1_500, (False, 2)), (6_000, 3, 200, (False, 3)), (10, 14, 1, (True, 12))],
)
def test_it_is_never_larger_than_its_bound(moves, readings, nodes, left):
    """Of names that do not compress; moves of days ago leave room for what was measured, however many there were."""
    dice = Random(1)
    names = [f"{dice.getrandbits(120):x}" for _ in range(nodes)]
    big = memory(
        *(move(dice.choice(names), at=ago(minutes=9_000 - n), pod=f"{dice.getrandbits(128):x}") for n in range(moves)),
        readings=tuple(
            Reading(ago(minutes=20 - n), {each: {"cpu": dice.random() * 100} for each in names})
            for n in range(readings)
        ),
    )

    text = encoded(big)
    kept = decoded({KEY: text}, make.NOW)

    assert len(text) <= LARGEST
    assert kept.moves == big.moves[len(big.moves) - len(kept.moves) :]
    assert kept.readings == big.readings[len(big.readings) - len(kept.readings) :]
    assert (len(kept.moves) == moves, len(kept.readings)) == left
    assert len(kept.moves) > 1_000 or len(kept.moves) == moves


@pytest.mark.parametrize(
    "change",
    [
        {"since": "2027-01-01T00:00:00Z"},
        {"since": "9999-12-31T23:59:59-14:00"},
        {"since": "2026-01-15T12:00:00"},
        {"moves": 5},
        {"moves": [{}]},
        {"breaker": {"since": "2026-01-15T11:00:00Z", "until": "2099-01-15T12:00:00Z"}},
        {"stops": [{"namespace": "a", "owner": "b", "since": "2026-01-15T11:00:00Z", "until": "2099-01-15T12:00:00Z"}]},
        {"undone": -1},
        {"readings": [{"at": "2026-01-15T11:00:00Z", "nodes": {"n1": {"cpu": 1e300}}}]},
    ],
)
def test_what_cannot_be_true_is_corrupt(change):
    """Times to come, stops for years, other types: the whole memory counts for nothing."""
    with pytest.raises(Unreadable):
        decoded(packed(plain(FULL) | change), make.NOW)


def test_what_a_cluster_says_does_not_make_it_corrupt():
    """An owner's name of any length, a node with next to nothing to allocate, and a node whose clock is ahead."""
    pod = make.pod("p", owners=[make.owner("w" * 700)])
    node = SimpleNamespace(name="n1", before={"cpu": 1e12})
    ledger = Ledger(runs=[SimpleNamespace(observed=SimpleNamespace(nodes=[node]))])
    moved = past_move(Entry("", "", pod, None, Granted()), ago(minutes=2), ago(minutes=2))
    written = memory(moved, readings=readings(ledger, make.NOW))
    ahead = ago(hours=-1)
    by_node = {"started": ahead, "conditions": (Condition("Ready", "True", changed=ahead),)}
    came = make.pod("q", owners=pod.owners, age=60, **by_node)
    known = settled(written, [came], make.NOW, timedelta(minutes=5))

    assert decoded({KEY: encoded(known)}, make.NOW) == known
    assert known.moves[0].ready == make.NOW


@pytest.mark.parametrize("text", [base64.b64encode(gzip.compress(b" " * (64 << 20))).decode(), " " * (LARGEST + 1)])
def test_what_is_too_large_is_corrupt(text):
    """Or becomes too large as it is unpacked."""
    with pytest.raises(Unreadable, match=r"MiB|KiB"):
        decoded({KEY: text}, make.NOW)


def test_a_later_version_is_named():
    """It is not corrupt, and must not be overwritten."""
    with pytest.raises(NewerMemory, match="later version"):
        decoded(packed({"version": 2, "moves": {"by": "owner"}}), make.NOW)


@pytest.mark.parametrize(
    ("kind", "name", "labels", "expected"),
    [
        ("ReplicaSet", "web-5d4f", {"pod-template-hash": "5d4f"}, "Deployment/web"),
        ("ReplicaSet", "web-5d4f", {"rollouts-pod-template-hash": "5d4f"}, "Rollout/web"),
        ("ReplicaSet", "web-5d4f", {}, "ReplicaSet/web-5d4f"),
        ("StatefulSet", "db", {"pod-template-hash": ""}, "StatefulSet/db"),
    ],
)
def test_an_owner_keeps_its_name_over_rollouts(kind, name, labels, expected):
    """A new ReplicaSet of a Deployment has moved as often as the old one."""
    assert owner_of(make.pod("p", owners=[make.owner(name, kind=kind)], labels=labels)) == expected


def test_a_clock_that_is_a_little_behind_is_no_forgery():
    assert decoded({KEY: encoded(memory(move(at=make.NOW + timedelta(minutes=2))))}, make.NOW)
