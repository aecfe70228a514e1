"""A fake API server with three nodes, and what steers a run on it, in a time that passes only when somebody waits."""

import pytest

from rebalancer.kube.marks import Mark
from rebalancer.kube.run_marks import RunMarks
from rebalancer.kube.tries import Halt
from rebalancer.policy.moving import Steering
from rebalancer.run.live import LiveSink, open_cluster
from rebalancer.run.live_steer import LiveSteer
from rebalancer.run.options import ClientOptions
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
def cluster(server, time, tmp_path):
    return open_cluster(ClientOptions(str(server.kubeconfig(tmp_path)), request_timeout=60.0), time.retry_policy())


@pytest.fixture
def sink(cluster, halt):
    return LiveSink(cluster, None, halt)


@pytest.fixture
def steer(cluster, time, halt, sink):
    marks = RunMarks(cluster, KEYS, Mark("run-1", (), BORN), halt, lambda _: False, time.retry_policy())
    before = make.snapshot([make.node(name) for name in ("n1", "n2", "n3")], ())
    return LiveSteer(sink, marks, Steering(), before, {})
