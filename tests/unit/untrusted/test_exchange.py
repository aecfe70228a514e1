"""An exchange that takes too long keeps nobody, and leaves nothing behind."""

import socket
import threading
from functools import partial

import pytest
import urllib3

from rebalancer.untrusted import exchange
from rebalancer.untrusted.exchange import GivenUp, cuttable, within
from tests.fake_http import HttpServer, Reply


@pytest.fixture
def trickling():
    """A server that sends the headers, or the body, of its answer byte by byte and without an end."""
    over = threading.Event()
    with HttpServer(lambda request: Reply(200, "", dripping=request.path.strip("/"), over=over)) as server:
        yield server
        over.set()


def read(url, threads=None):
    if threads is not None:
        threads.append(threading.current_thread())
    with urllib3.PoolManager() as pool:
        return cuttable(pool).request("GET", url, timeout=60, retries=False).data


@pytest.mark.parametrize("part", ["headers", "body"])
def test_neither_a_thread_nor_a_socket_is_lost(trickling, part):
    """The server would go on for ever; what is given up ends nevertheless."""
    threads = []

    with pytest.raises(GivenUp):
        within(0.3, partial(read, f"{trickling.url}/{part}", threads))

    assert_ended(threads)


def assert_ended(threads):
    (thread,) = threads
    thread.join(10)
    assert not thread.is_alive()


def test_an_error_is_an_answer_like_any_other():
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 / 0)


def test_silence_ends_when_the_program_is_told_to_end(monkeypatch):
    """A server that accepts connections and says nothing; the limit is far away."""
    monkeypatch.setattr(exchange, "HURRIED_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = []

        def is_ending():
            asked.append(threading.active_count())
            return len(asked) > 1

        with pytest.raises(GivenUp):
            within(600, partial(read, f"http://127.0.0.1:{silent.getsockname()[1]}"), is_ending)
        assert len(asked) == 2


def test_a_signal_that_raises_cuts_the_exchange(trickling):
    """As in a dry run, where SIGTERM raises wherever the program is."""

    threads = []

    def interrupted():
        if threads:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        within(600, partial(read, f"{trickling.url}/body", threads), interrupted)
    assert_ended(threads)


def test_the_program_may_end_while_a_call_hangs():
    assert within(120, lambda: threading.current_thread().daemon)
