"""When a request is tried again, and who may end that: nothing is written after a signal or the deadline."""

import random
import threading

import pytest

from rebalancer.errors import Unreachable
from rebalancer.eviction.verdict import Failed, Unknown
from rebalancer.kube.answers import Transient
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.tries import Ending, Halt, Halted

EVICTION = "*/eviction"
ENDS = {"deadline": lambda halt, time: time.sleep(4), "signal": lambda halt, _: halt.signal("SIGTERM")}


@pytest.fixture
def halt(time):
    return Halt(3, time.clock)


@pytest.fixture
def evictions(client, time, halt):
    return Evictions(client, time.retry_policy(stop=halt.signalled), halt)


def test_a_halt_says_why(time, halt):
    """A signal counts before the deadline, the first one of several; it wakes whoever waits between two tries."""
    assert (halt.reason, halt.signalled.is_set()) == ("", False)
    halt.check()
    time.sleep(3)
    assert halt.reason == "the deadline of 3 s after the snapshot has passed"
    halt.signal("SIGTERM")
    halt.signal("SIGINT")
    assert (halt.reason, halt.signalled.is_set()) == ("stopped by SIGTERM", True)
    with pytest.raises(Halted, match="stopped by SIGTERM"):
        halt.check()


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("status", "verdict"), [(401, Failed), (429, Failed), (500, Unknown)])
def test_a_second_try_does_not_outlast_the_end(evict, server, halt, time, end, status, verdict):
    """Nor one with other credentials: the answer to the first one comes late, and decides."""
    server.on("POST", EVICTION, lambda _: end(halt, time), times=1)
    server.fail("POST", EVICTION, status=status, times=1)

    assert isinstance(evict(), verdict)
    assert (len(server.sent("POST", EVICTION)), server.evicted) == (1, [])


def test_a_signal_may_come_while_its_own_thread_waits_for_it():
    """Its handler then runs in the middle of that, and must not wait for what the thread holds."""
    ending = Ending()
    handler = threading.Thread(target=ending.set, daemon=True)
    with ending._cond:
        handler.start()
        handler.join(30)

    assert (handler.is_alive(), ending.wait(30), ending.wait()) == (False, True, True)
    assert not Ending().wait(0.01)


def tries(policy, takes=lambda: None, **said):
    """Call a function that never succeeds; return how often."""
    calls = []

    def once():
        calls.append(takes())
        raise Transient("no", **said)

    with pytest.raises(Unreachable):
        policy.call(None, once)
    return len(calls)


@pytest.mark.parametrize("asked", [0.001, 1e-9])
def test_no_wait_is_shorter_than_a_tenth_of_a_second(time, asked):
    """Whatever the server says: it would be asked thousands of times."""
    assert tries(time.retry_policy(seconds=2), retry_after=asked) < 20
    assert min(time.waits) >= 0.1


@pytest.mark.parametrize("said", [{}, {"retry_after": 0.3}, {"retry_after": 4}])
def test_chance_decides_nothing(time, said):
    """Jitter spreads the tries of many clients; how many there are does not depend on it."""
    assert len({tries(time.retry_policy(jitter=random.Random(seed).uniform), **said) for seed in range(30)}) == 1


@pytest.mark.parametrize(("seconds", "takes", "chosen"), [(3.5, 0.0, min), (3.5, 0.0, max), (3.0, 0.75, max)])
def test_no_try_begins_at_the_very_end(time, seconds, takes, chosen):
    """The longest of all waits together count, 0.5 + 1 + 2 s or 0.5 + 1 s, and so does the time that tries take."""
    policy = time.retry_policy(seconds=seconds, jitter=chosen)
    assert tries(policy, lambda: setattr(time, "now", time.now + takes)) == (2 if takes else 3)


@pytest.mark.parametrize(("asked", "longest"), [(4, 4.4), (40, 41)])
def test_a_wait_that_the_server_asks_for_is_spread_over_a_second_at_most(time, asked, longest):
    """Clients that were told the same come back one after another, and none of them much later."""
    assert tries(time.retry_policy(seconds=longest + 1), retry_after=asked) == 2
    assert time.waits == [longest]
