"""Signals that come more than once."""

import signal

import pytest

from rebalancer.errors import Interrupted
from rebalancer.run.interruption import Interruption


def leave(name):
    raise Interrupted(f"left after {name}", 0)


@pytest.mark.parametrize("act", [None, leave], ids=["before the run", "between two cycles"])
def test_a_second_signal_does_not_cut_off_what_the_first_one_ends_with(act):
    done = []

    def run():
        with Interruption() as interruption:
            if act:
                interruption.then(act)
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGINT)
                done.append("given back")

    with pytest.raises(Interrupted, match="SIGTERM"):
        run()

    assert done == ["given back"]


def test_a_signal_that_ends_nothing_is_heard_each_time():
    heard = []
    with Interruption() as interruption:
        interruption.then(heard.append)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)

    assert heard == ["SIGTERM", "SIGINT"]
    assert interruption.exit_code == 130
