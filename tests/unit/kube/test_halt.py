"""Nothing is written after a signal or the deadline: one gate before every write."""

import threading

import pytest

from rebalancer.eviction.verdict import Failed, Unknown
from rebalancer.kube.answers import Transient
from rebalancer.kube.client import Client
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.tries import Ending, Halt, Halted
from tests.fake_http import Reply

EVICTION, PODS = "*/eviction", "/api/v1/pods"
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


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_drips_ends_with_its_time(connection, server, time, part):
    """Each byte comes within the time-out of a socket, and all of them together never."""
    over = threading.Event()
    server.on("POST", PODS, lambda _: Reply(200, {"kind": "PodList"}, dripping=part, over=over))

    with pytest.raises(Transient, match=r"timed out|in time") as caught:
        Client(connection, request_timeout=0.3, retry_policy=time.retry_policy()).write("POST", PODS, b"{}")
    over.set()
    assert caught.value.maybe_done


def test_a_signal_may_come_while_its_own_thread_waits_for_it():
    """Its handler then runs in the middle of that, and must not wait for what the thread holds."""
    ending = Ending()
    handler = threading.Thread(target=ending.set, daemon=True)
    with ending._cond:
        handler.start()
        handler.join(30)

    assert (handler.is_alive(), ending.wait(30), ending.wait()) == (False, True, True)
    assert not Ending().wait(0.01)
