import socket
import threading
from dataclasses import replace

import pytest
from urllib3.exceptions import HTTPError, ProtocolError

from rebalancer.errors import Forbidden, NoCredentials, Unreachable
from rebalancer.kube.answers import Expired, NotFound, Rejected, Transient
from rebalancer.kube.client import Client, no_answer, path_of
from rebalancer.kube.tries import Deadline
from tests.e2e.waiting import wait_for
from tests.fake_http import Reply

PODS = "/api/v1/pods"


def test_a_request_says_who_asks_and_with_what(client, server, pod):
    """The server may compress, and the bytes that come out are the plain ones."""
    server.add(pod("a" * 2000, app="b"))

    assert b"a" * 2000 in client.get(PODS, {"limit": "5", "labelSelector": "app in (a,b)"})
    (request,) = server.requests
    assert request.query == {"limit": "5", "labelSelector": "app in (a,b)"}
    assert request.headers["authorization"] == "Bearer the-token"
    assert request.headers["user-agent"].startswith("rebalancer/")
    assert request.headers["accept-encoding"] == "gzip"


def test_connections_are_used_again(client, server):
    """Refused or not, an answer that was read to its end leaves its connection for the next request."""
    server.fail("GET", PODS, status=503, times=1)
    client.get(PODS)
    client.write("POST", "/nowhere", b"{}")
    client.get(PODS)

    assert len(server.requests) == 4
    assert len({request.port for request in server.requests}) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, None])
def test_a_busy_or_broken_server_is_asked_again(connection, server, time, status):
    """A reset is what a rolling restart looks like.  Each wait is twice the last, up to 8 s, and differs by chance."""
    bounds = []
    retry_policy = time.retry_policy(jitter=lambda low, high: bounds.append((low, high)) or high)
    server.fail("GET", PODS, status=status, times=6) if status else server.reset("GET", PODS, times=6)

    assert b"PodList" in Client(connection, retry_policy=retry_policy).get(PODS)
    assert bounds == [(0.25, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 8), (4, 8)]
    assert time.waits == [high for _, high in bounds]


@pytest.mark.parametrize(
    ("status", "headers", "seconds", "waits"), [(429, {"Retry-After": "31"}, 3600, []), (500, {}, 2, [0.5, 1])]
)
def test_a_wait_past_the_end_of_the_policy_or_a_deadline_is_not_begun(
    client, server, time, status, headers, seconds, waits
):
    server.fail("GET", PODS, status=status, headers=headers)

    with pytest.raises(Unreachable, match=f"answers {status} to GET /api/v1/pods: it is broken"):
        client.get(PODS, deadline=Deadline.after(seconds, time.clock))
    assert time.waits == waits


def test_nothing_is_asked_for_after_the_deadline(client, server, time):
    with pytest.raises(Unreachable, match="no time left"):
        client.get(PODS, deadline=Deadline(time.now, time.clock))
    assert server.requests == []


@pytest.mark.parametrize("moment", ["during a request", "during a wait"])
def test_a_stop_ends_the_retries(connection, server, time, moment):
    """The request in flight is the last one, and its failure is the one to be told; a wait ends."""
    policy = time.retry_policy(sleep=lambda _: policy.stop.set())
    server.on("GET", PODS, lambda _: policy.stop.set() if moment == "during a request" else None)
    server.fail("GET", PODS, status=503, message="come back later")

    with pytest.raises(Unreachable, match="come back later" if moment == "during a request" else "told to stop"):
        Client(connection, retry_policy=policy).get(PODS)
    assert len(server.requests) == 1


def test_after_the_end_of_the_program_has_come_there_is_an_end_of_requests(client, server, time, monkeypatch):
    """SIGKILL would come before a server that answers nothing has been asked for everything."""
    client.ending.set()
    client.get("/api/v1/nodes")

    monkeypatch.setattr(client.ending, "_until", Deadline.after(0))
    client.ending.set()  # another signal gives no more time
    for ask in (lambda: client.get("/api/v1/pods"), lambda: client.write("POST", "/api/v1/pods", b"{}")):
        with pytest.raises(Unreachable, match="told to end"):
            ask()
    assert [each.path for each in server.requests] == ["/api/v1/nodes"]
    assert time.waits == []


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (403, Forbidden, "no permission to list pods: it is broken"),
        *((status, error, "it is broken") for status, error in {404: NotFound, 410: Expired, 400: Rejected}.items()),
        (302, Rejected, "it is broken"),
    ],
)
def test_what_does_not_pass_is_not_asked_for_again(client, server, status, error, words):
    """The message of a 403 has the verb and the resource for the role."""
    server.fail("GET", PODS, status=status, headers={"Location": "/login"})

    with pytest.raises(error, match=words):
        client.get(PODS)
    assert len(server.requests) == 1


@pytest.fixture
def stranger(client_of, server, time):
    """A port of something else, and a client that takes it for the API server."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening, replace(client_of(server, server=_url_of(listening)), retry_policy=time.retry_policy(0))


def say(listening, *conversations):
    """Take a connection for each conversation; each of its answers follows a request, and none the end of them."""
    for answers in conversations:
        accepted, _ = listening.accept()
        with accepted:
            for answer in answers:
                if accepted.recv(65_536):
                    accepted.sendall(answer)


def test_a_server_that_does_not_speak_http_is_told_in_words(stranger):
    """Without the objects of the library: a port of something else was given."""
    listening, other = stranger
    threading.Thread(target=say, args=(listening, [b"SSH-2.0-Server\r\n"]), daemon=True).start()

    with pytest.raises(Unreachable, match=r"the answer is not HTTP, but begins with 'SSH-2\.0"):
        other.get(PODS)


def test_the_answer_after_an_interim_one_is_not_taken_for_the_next(stranger):
    """A proxy says 102 while it waits for the server; the next request goes by another connection."""
    listening, other = stranger
    interim = [b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 500 Too late\r\nContent-Length: 0\r\n\r\n"]
    answers = (listening, interim, [b"HTTP/1.1 204 Fine\r\n\r\n"])
    answering = threading.Thread(target=say, args=answers, daemon=True)
    answering.start()

    assert [other.look(PODS).status for _ in range(2)] == [102, 204]
    answering.join(60.0)


def _url_of(listening):
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_stays_silent_is_unreachable(connection, server, time):
    """In the end the error names the server and the context, and says what happened."""
    server.stall("GET", PODS, times=None)
    client = Client(connection, request_timeout=0.05, retry_policy=time.retry_policy(seconds=1))

    with pytest.raises(Unreachable, match=rf"no answer from the API server {server.url} \(context fake\): timed out"):
        client.get(PODS)
    # A busy server notices a request, perhaps, when the client has given it up already.
    wait_for(lambda: len(server.requests) == 2, "the second try")


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_drips_ends_with_its_time(connection, server, time, part):
    """Each byte comes within the time-out of a socket, and all of them together never."""
    over = threading.Event()
    server.on("POST", PODS, lambda _: Reply(200, {"kind": "PodList"}, dripping=part, over=over))

    with pytest.raises(Transient, match=r"timed out|in time") as caught:
        Client(connection, request_timeout=0.3, retry_policy=time.retry_policy()).write("POST", PODS, b"{}")
    over.set()
    assert caught.value.maybe_done


def test_an_answer_without_a_deadline_has_five_minutes(client, server, time):
    """A server that drips holds up nobody for longer, whoever asks."""
    server.on("GET", PODS, lambda _: time.sleep(299.9), times=1)
    assert b"PodList" in client.get(PODS)

    server.on("GET", PODS, lambda _: time.sleep(300.1))
    with pytest.raises(Transient, match="did not finish its answer in time") as caught:
        client.get(PODS)
    assert caught.value.maybe_done


def test_a_server_that_is_not_there_is_reported_soon(client_of, server, time):
    """Nobody listens: four tries, not half a minute."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        client = client_of(server, server=_url_of(closed))

    with pytest.raises(Unreachable, match="Connection refused") as caught:
        client.get(PODS)
    assert time.waits == [0.5, 1, 2]
    assert not caught.value.maybe_done


def test_a_certificate_that_is_not_trusted_is_told_at_once(client_of, secure, time):
    """Trying again does not help; the message says where to look, and nothing was sent."""
    with pytest.raises(Unreachable, match=r"certificate of the API server https://.* is not trusted: .*self-signed"):
        client_of(secure).get(PODS)
    assert (secure.requests, time.waits) == ([], [])


def test_a_tls_error_of_settings_is_reported_soon(client_of, server, time):
    """A plain HTTP port behind an https address does not become one by waiting."""
    client = client_of(server, server=server.url.replace("http://", "https://"))

    with pytest.raises(Unreachable, match="no answer from the API server https://"):
        client.get(PODS)
    assert len(time.waits) == 3


def test_a_connection_is_given_up_before_its_request(client, connection):
    """Where none is established in nine tenths of the time, it is certain that the request was not sent."""
    real, seen = connection.access().pool.urlopen, []

    def request(*arguments, timeout, **settings):
        seen.append((timeout.connect_timeout, timeout.read_timeout))
        return real(*arguments, timeout=timeout, **settings)

    connection.access().pool.urlopen = request
    client.get(PODS)

    assert seen == [(54.0, 60.0)]


def test_no_body_is_sent_once_the_time_is_up(client, server, time):
    """Establishing the connection took too long: without its body the request does nothing, and that is certain."""
    seconds = iter([0, 61])

    def gate():
        time.sleep(next(seconds))

    with pytest.raises(Transient, match="the time was up before the request was sent") as caught:
        client.write("POST", "/x", b"{}", gate=gate)
    assert not caught.value.maybe_done
    assert server.requests == []


def test_refused_credentials_are_loaded_again_once(client, server):
    """A 401 with fresh credentials is final; the message has the cure and no token."""
    server.token = "another"

    with pytest.raises(NoCredentials, match=r"does not accept the credentials.*Log in again") as caught:
        client.get(PODS)
    assert len(server.requests) == 2
    assert "the-token" not in str(caught.value)


def test_names_in_a_path_are_encoded():
    assert path_of("api", "v1", "a/b?c", "ü") == "/api/v1/a%2Fb%3Fc/%C3%BC"


def test_whoever_watches_is_told_of_each_request(connection, server, time):
    """With 0 for one that had no answer, and without what it was asked for."""
    seen = []
    server.reset("GET", PODS)
    client = Client(connection, retry_policy=time.retry_policy(), observe=lambda *request: seen.append(request))

    client.get(PODS, {"limit": "5"})

    assert seen == [("GET", PODS, 0), ("GET", PODS, 200)]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ProtocolError("the answer is cut off"), "the answer is cut off"),
        (ProtocolError("aborted", ConnectionResetError(104, "Connection reset by peer")), "Connection reset by peer"),
        (HTTPError(), "HTTPError"),
    ],
)
def test_the_nearest_words_there_are_tell_what_went_wrong(error, words):
    """Those of the system, else those of the error, else its name."""
    assert str(no_answer(error, "the API server", "")) == f"no answer from the API server: {words}"
