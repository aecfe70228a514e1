"""Acting on many nodes at once, and stopping in the middle."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from rebalancer.errors import Interrupted
from rebalancer.kube.node_marks import on_each


def test_an_interruption_leaves_the_nodes_that_have_not_begun_as_they_are(monkeypatch):
    """Ctrl-C is not answered by hundreds of writes; what has begun is waited for."""
    heard, begun, ended = threading.Event(), [], []
    shutdown = ThreadPoolExecutor.shutdown

    def shut(pool, **settings):
        shutdown(pool, **{**settings, "wait": False})
        heard.set()
        shutdown(pool, **settings)

    def act(name):
        if name == "n000":
            raise Interrupted("stopped by SIGINT", 130)
        begun.append(name)
        heard.wait(120.0)
        ended.append(name)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shut)
    with pytest.raises(Interrupted):
        on_each((f"n{number:03}" for number in range(200)), act)
    assert len(begun) <= 8
    assert sorted(ended) == sorted(begun)
