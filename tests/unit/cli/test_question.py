"""The question before a live run, on a terminal of its own."""

import os
import pty
import signal
import threading

import pytest

from rebalancer.cli.terminal import question
from rebalancer.errors import Interrupted
from rebalancer.run.interruption import Interruption

PLAN = {
    "overview": {
        "pods": {"evicted": 1, "total": 2},
        "namespaces": [],
        "owners": [],
        "limits": {"total": 1, "node": None, "namespace": None},
        "alarms": [],
    },
    "strategies": [],
    "failures": [],
    "evictions": [],
    "warnings": [],
}


def test_a_signal_that_another_thread_hears_ends_it(monkeypatch):
    """It does not interrupt the read then; nor does one that comes in the moment before the read."""
    screen, terminal = pty.openpty()

    def send():
        shown = b""
        while b"[y/N/show]" not in shown:
            shown += os.read(screen, 65_536)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    sender = threading.Thread(target=send, daemon=True)
    with os.fdopen(screen, "rb"), os.fdopen(terminal) as typed, os.fdopen(terminal, "w", closefd=False) as shown:
        monkeypatch.setattr("sys.stdin", typed)
        monkeypatch.setattr("sys.stderr", shown)
        sender.start()
        with Interruption(), pytest.raises(Interrupted):
            question({"context": "fake", "server": "s"})(PLAN, [])
        sender.join(10)
