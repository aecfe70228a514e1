"""When a request is tried again, and who may end that."""

import random

import pytest

from rebalancer.errors import Unreachable
from rebalancer.kube.answers import Transient


def fail(**said):
    """A function that never succeeds, and the list of its calls."""
    calls = []

    def once():
        calls.append(None)
        raise Transient("no", **said)

    return once, calls


@pytest.mark.parametrize("asked", [0.001, 1e-9])
def test_no_wait_is_shorter_than_a_tenth_of_a_second(time, asked):
    """Whatever the server says: it would be asked thousands of times."""
    once, calls = fail(retry_after=asked)

    with pytest.raises(Unreachable):
        time.retry_policy(seconds=2).call(None, once)
    assert min(time.waits) >= 0.1
    assert len(calls) < 20


@pytest.mark.parametrize("said", [{}, {"retry_after": 0.3}, {"retry_after": 4}])
def test_chance_decides_nothing(time, said):
    """Jitter spreads the tries of many clients; how many there are does not depend on it."""
    counts = set()
    for seed in range(30):
        once, calls = fail(**said)
        with pytest.raises(Unreachable):
            time.retry_policy(jitter=random.Random(seed).uniform).call(None, once)
        counts.add(len(calls))

    assert len(counts) == 1


@pytest.mark.parametrize(("seconds", "takes", "chosen"), [(3.5, 0.0, min), (3.5, 0.0, max), (3.0, 0.75, max)])
def test_no_try_begins_at_the_very_end(time, seconds, takes, chosen):
    """The longest of all waits together count, 0.5 + 1 + 2 s or 0.5 + 1 s, and so does the time that tries take."""
    once, calls = fail()

    def slowly():
        time.now += takes
        once()

    with pytest.raises(Unreachable):
        time.retry_policy(seconds=seconds, jitter=chosen).call(None, slowly)
    assert len(calls) == (2 if takes else 3)


@pytest.mark.parametrize(("asked", "longest"), [(4, 4.4), (40, 41)])
def test_a_wait_that_the_server_asks_for_is_spread_over_a_second_at_most(time, asked, longest):
    """Clients that were told the same come back one after another, and none of them much later."""
    failing = iter([True, False])

    def once():
        if next(failing):
            raise Transient("no", retry_after=asked)

    time.retry_policy(seconds=100).call(None, once)
    assert time.waits == [longest]
