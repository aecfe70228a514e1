"""Marks on nodes to which others write all the time, by a server whose answers get lost: nothing of others is lost."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from rebalancer.kube.marks import ANNOTATION, Mark, SteeringMarks
from rebalancer.kube.run_marks import RunMarks
from rebalancer.kube.tries import Halt, RetryPolicy
from tests.attack.seeds import seeds
from tests.fake_api_server import FakeApiServer
from tests.fake_http import Reply, Request

Object = dict[str, Any]

KEYS = SteeringMarks.of("kube-rebalancer/avoid")
FOREIGN = [
    {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"},
    {"key": "kube-rebalancer/avoid", "effect": "NoSchedule"},
    {"key": "spot", "value": "true", "effect": "NoExecute", "timeAdded": "2026-01-15T12:00:00Z"},
]
NODES = ("n1", "n2", "n3")


class Writer:
    """Changes taints and annotations of nodes just before our patches come, and knows what should be there."""

    def __init__(self, server: FakeApiServer, chance: random.Random) -> None:
        self.taints: dict[str, list[Object]] = {name: [] for name in NODES}
        self.notes: dict[str, str] = {}
        self._server = server
        self._chance = chance

    def act(self, request: Request) -> Reply | None:
        """Change the node, as a rule; then let the patch pass, refuse it, or lose the answer."""
        if self._chance.random() < 0.7:
            self._change(request.path.rpartition("/")[2])
        match self._chance.random():
            case share if share < 0.1:
                return Reply(self._chance.choice((409, 429, 500, 503)), "busy")
            case share if share < 0.2:
                return Reply(0, None, lost=True)
            case share if share < 0.3:
                self._server.process(request)
                return Reply(0, None, lost=True)
        return None

    def _change(self, name: str) -> None:
        node = self._server.node(name)
        mine = self._chance.sample(FOREIGN, self._chance.randint(0, len(FOREIGN)))
        ours = [each for each in node["spec"].get("taints", []) if each not in FOREIGN]
        place = self._chance.randint(0, len(mine))
        taints = [*mine[:place], *ours, *mine[place:]]
        metadata = {key: value for key, value in node["metadata"].items() if key != "annotations"}
        kept = {k: v for k, v in node["metadata"].get("annotations", {}).items() if k == ANNOTATION}
        kept |= {"example.com/seen": str(self._chance.random())} if self._chance.random() < 0.5 else {}
        metadata |= {"annotations": kept} if kept else {}
        self._server.add({**node, "metadata": metadata, "spec": {"taints": taints} if taints else {}})
        self.taints[name] = mine
        self.notes[name] = kept.get("example.com/seen", "")


@pytest.fixture
def client(server: FakeApiServer, tmp_path: Path) -> Iterator[Client]:
    connection = connect(str(server.kubeconfig(tmp_path)), None, environ={})
    yield Client(connection, request_timeout=5.0)
    connection.close()


@pytest.mark.parametrize("seed", seeds(5))
def test_taints_of_others_survive(server: FakeApiServer, client: Client, seed: int) -> None:
    """Whatever is written in between and whatever answers get lost; and none of ours is left."""
    chance = random.Random(seed)
    writer = Writer(server, chance)
    for name in NODES:
        server.add({"kind": "Node", "metadata": {"name": name, "uid": name}, "spec": {}})
    server.on("PATCH", "*", writer.act)
    mark = Mark(f"run-{seed}", (), datetime(2026, 1, 15, 12, 7, tzinfo=UTC))
    eager = RetryPolicy(
        first_wait=0.001, shortest_wait=0.0, longest_wait=0.002, tries_unconnected=1_000, sleep=lambda _: None
    )
    marks = RunMarks(client, KEYS, mark, Halt(), lambda _: False, eager)

    for _ in range(6):
        levels = {name: chance.randint(0, 2) for name in NODES}
        assert marks.adjust(levels) == {}
        for name, level in levels.items():
            assert foreign(server, name) == writer.taints[name]
            assert len(taints(server, name)) == len(writer.taints[name]) + level
    assert marks.take_off() == {}

    for name in NODES:
        annotations = server.node(name)["metadata"].get("annotations", {})
        assert taints(server, name) == writer.taints[name]
        assert annotations == ({"example.com/seen": writer.notes[name]} if writer.notes.get(name) else {})


def taints(server: FakeApiServer, name: str) -> list[Object]:
    found: list[Object] = server.node(name)["spec"].get("taints", [])
    return found


def foreign(server: FakeApiServer, name: str) -> list[Object]:
    return [each for each in taints(server, name) if each in FOREIGN]
