"""A fake API server with three nodes, and what steers a run on it, in a time that passes only when somebody waits."""

import pytest

from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from rebalancer.kube.halt import Halt
from rebalancer.kube.marks import Mark
from rebalancer.kube.run_marks import RunMarks
from rebalancer.policy.moving import Steering
from rebalancer.run.live_steer import LiveSteer
from tests import make
from tests.fake_api_server import FakeApiServer
from tests.unit.kube.conftest import FakeTime
from tests.unit.run.waves import BORN, KEYS


@pytest.fixture
def time():
    return FakeTime()


@pytest.fixture
def server():
    with FakeApiServer() as running:
        for name in ("n1", "n2", "n3"):
            running.add({"kind": "Node", "metadata": {"name": name, "uid": name}, "spec": {}})
        yield running


@pytest.fixture
def halt(time):
    return Halt(300, time.clock)


@pytest.fixture
def steer(server, time, halt, tmp_path):
    connection = connect(str(server.kubeconfig(tmp_path)), None, environ={})
    client = Client(connection, request_timeout=60.0, retry_policy=time.retry_policy())
    marks = RunMarks(client, KEYS, Mark("run-1", (), BORN), halt, lambda _: False, time.retry_policy())
    before = make.snapshot([make.node(name) for name in ("n1", "n2", "n3")], ())
    yield LiveSteer(client, marks, halt, time.sleep, Steering(), before)
    connection.close()
