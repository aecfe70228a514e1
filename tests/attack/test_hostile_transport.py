"""An API server whose HTTP is broken on its way: cut off, of another length than it says, packed wrongly, no HTTP.

The server does what it is asked for, and only then goes its answer wrong.
"""

import gzip
import json
import zlib
from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest

from rebalancer.errors import ClusterError
from tests.attack.whims import Time
from tests.fake_api_server import FakeApiServer
from tests.fake_http import _Handler
from tests.functional.objects import OLD, old_pods, policy, two_nodes_with
from tests.functional.program import Program

EVICTIONS, PODS = "*/eviction", "/api/v1/pods"
TWO = policy(OLD, maxNoOfPodsToEvictTotal=2)

Twist = Callable[[bytes], bytes]


def answer(body, *headers, first="HTTP/1.1 200 OK"):
    return "\r\n".join([first, "Content-Type: application/json", *headers, "", ""]).encode() + body


def measured(body, *headers, more=0, **settings):
    return answer(body, f"Content-Length: {len(body) + more}", *headers, **settings)


def chunked(body, length, end=b"0\r\n\r\n"):
    return answer(length.encode() + b"\r\n" + body + b"\r\n" + end, "Transfer-Encoding: chunked")


def gzipped(body):
    return measured(body, "Content-Encoding: gzip")


#: Odd, and whole all the same.
WHOLE: dict[str, Twist] = {
    "chunks": lambda body: chunked(body, f"{len(body):X};a=b"),
    "HTTP/1.0": lambda body: answer(body, first="HTTP/1.0 200 OK"),
    "kept alive, and closed": lambda body: measured(body, "Connection: keep-alive"),
    "to be continued": lambda body: b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + measured(body),
    "deflated": lambda body: measured(zlib.compress(body), "Content-Encoding: deflate"),
    "packed twice": lambda body: measured(gzip.compress(gzip.compress(body)), "Content-Encoding: gzip, gzip"),
    "control characters": lambda body: measured(body, "X: \x00\x1b[31m", "Retry-After: \x02"),
}
BROKEN: dict[str, Twist] = {
    "nothing": lambda _: b"",
    "no HTTP": lambda body: body,
    "HTTP of another kind": lambda body: measured(body, first="HTTP/3.7 200 OK"),
    "no status": lambda body: measured(body, first="HTTP/1.1 abc"),
    "a status of zero": lambda body: measured(body, first="HTTP/1.1 000 no"),
    "another protocol": lambda _: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "nothing new": lambda _: b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "elsewhere": lambda _: b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n",
    "a part": lambda body: measured(body[:6], "Content-Range: bytes 0-5/100", first="HTTP/1.1 206 Partial Content"),
    "shorter than it says": lambda body: measured(body, more=50),
    "longer than it says": lambda body: measured(body, more=-5),
    "two lengths": lambda body: measured(body, "Content-Length: 3"),
    "a chunk cut off": lambda body: chunked(body[:-9], f"{len(body):X}", b""),
    "no last chunk": lambda body: chunked(body, f"{len(body):X}", b""),
    "a negative chunk": lambda body: chunked(body, "-5"),
    "a chunk of no length": lambda body: chunked(body, "zz"),
    "an endless chunk": lambda body: chunked(body, "f" * 40),
    "not packed": gzipped,
    "packed and cut off": lambda body: gzipped(gzip.compress(body)[: len(body) // 8]),
    "an endless status": lambda _: answer(b"", first="HTTP/1.1 200 " + "x" * 100_000),
    "endless headers": lambda body: measured(body, *(f"X-{number}: y" for number in range(500))),
    "two documents": lambda body: measured(body + body),
    "zeros at its end": lambda body: measured(body + b"\0\0"),
    "another encoding": lambda body: measured(body.decode().encode("utf-16")),
}


class Twisted(_Handler):
    """Answers as the server does, and twists what matches."""

    method, pattern = "", ""
    twist: Twist

    def _send(self, reply):
        if self.command != self.method or not fnmatchcase(self.path.partition("?")[0], self.pattern):
            super()._send(reply)
            return
        self.close_connection = True
        self.wfile.write(type(self).twist(json.dumps(reply.body).encode()))


def handler(method, pattern, twist):
    return type("Handler", (Twisted,), {"method": method, "pattern": pattern, "twist": staticmethod(twist)})


def attacked(folder, method, pattern, twist):
    """Run against a server that twists these answers; return it and the report, None if the cluster is unreadable."""
    with FakeApiServer(two_nodes_with(*old_pods("a", "b", "c"))) as server:
        server._http.RequestHandlerClass = handler(method, pattern, twist)
        try:
            return server, Program(folder).play(server, TWO, Time(), deadline=300.0).report
        except ClusterError:
            return server, None


@pytest.mark.parametrize("twist", WHOLE.values(), ids=WHOLE)
def test_a_list_that_is_whole_is_read(tmp_path, twist):
    server, report = attacked(tmp_path, "GET", PODS, twist)

    assert report is not None
    assert server.evicted == ["default/a", "default/b"]


@pytest.mark.parametrize("twist", BROKEN.values(), ids=BROKEN)
def test_a_list_that_is_broken_is_an_error(tmp_path, twist):
    """And never a shorter list: nothing is evicted."""
    server, report = attacked(tmp_path, "GET", PODS, twist)

    assert report is None
    assert server.evicted == []


@pytest.mark.parametrize("twist", [*WHOLE.values(), *BROKEN.values()], ids=[*WHOLE, *BROKEN])
def test_a_broken_answer_to_an_eviction_exceeds_no_limit(tmp_path, twist):
    """All that went is in the report, and no more went than may."""
    server, report = attacked(tmp_path, "POST", EVICTIONS, twist)

    assert report is not None
    told = [f"{each['namespace']}/{each['name']}" for each in (*report["evictions"], *report["unknown"])]
    assert server.evicted == sorted(told) == ["default/a", "default/b"]
