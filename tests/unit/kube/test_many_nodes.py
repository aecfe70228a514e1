"""Acting on many nodes at once, and stopping in the middle."""

import sys
import threading
import time
import traceback

import pytest

from rebalancer.errors import Interrupted
from rebalancer.kube.node_marks import on_each


def is_joining(thread: int) -> bool:
    """Whether a thread waits for another one to end."""
    frames = traceback.walk_stack(sys._current_frames()[thread])
    return any(frame.f_code is threading.Thread.join.__code__ for frame, _ in frames)


def test_an_interruption_leaves_the_nodes_that_have_not_begun_as_they_are():
    """Ctrl-C is not answered by hundreds of writes; what has begun is waited for."""
    main, go_on, begun, ended = threading.get_ident(), threading.Event(), [], []
    until = time.monotonic() + 120.0

    def act(name: str) -> None:
        if name == "n000":
            raise Interrupted("stopped by SIGINT", 130)
        begun.append(name)
        while name == "n001" and not is_joining(main):  # it has not yet heard of the interruption
            assert time.monotonic() < until
        go_on.set() if name == "n001" else go_on.wait(120.0)
        ended.append(name)

    with pytest.raises(Interrupted):
        on_each((f"n{number:03}" for number in range(200)), act)
    assert len(begun) <= 8
    assert sorted(ended) == sorted(begun)
