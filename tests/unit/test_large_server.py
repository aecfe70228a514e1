"""The server of live measurements: what it does by itself, and what it leaves to the fake server."""

from tests.bench.large_server import LargeServer
from tests.fake_http import Request


def test_it_serves_pages_grants_evictions_and_leaves_the_rest_to_the_fake_server():
    """A kind that it has no page of is the fake server's business, which asks for a token first."""
    with LargeServer(4, 40) as server:

        def status(method, path):
            return server.reply(Request(method, path, {}, {}, None, 0)).status

        assert status("GET", "/api/v1/pods") == 200
        assert status("POST", "/api/v1/namespaces/x/pods/a/eviction") == 201
        assert status("GET", "/api/v1/namespaces") == 401
