import json
import math

import pytest

from rebalancer.errors import Forbidden
from rebalancer.kube.answers import TEXT_LIMIT, HttpAnswer, cut, verb_and_resource
from rebalancer.kube.permissions import RESTARTING, STEERING, demand_writes
from tests.fake_http import Reply


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "pods")),
        ("GET", "/api/v1/namespaces", ("list", "namespaces")),
        ("GET", "/api/v1/namespaces/web", ("get", "namespaces")),
        ("GET", "/api/v1/namespaces/web/pods", ("list", "pods")),
        ("GET", "/apis/policy/v1/poddisruptionbudgets", ("list", "poddisruptionbudgets.policy")),
        ("GET", "/apis/metrics.k8s.io/v1beta1/nodes/n1", ("get", "nodes.metrics.k8s.io")),
        ("POST", "/api/v1/namespaces/web/pods/a/eviction", ("create", "pods/eviction")),
        ("POST", "/apis/events.k8s.io/v1/namespaces/web/events", ("create", "events.events.k8s.io")),
        ("GET", "/version", ("get", "/version")),
    ],
)
def test_a_path_is_named_as_a_role_names_it(method, path, expected):
    """What is missing can be copied into a Role: its verb, resource, subresource and group."""
    assert verb_and_resource(method, path) == expected


def test_a_text_of_the_server_is_one_line_and_short():
    """However much a server says, a log line stays a line."""
    assert cut("a\n  b\tc") == "a b c"
    assert cut("x" * TEXT_LIMIT) == "x" * TEXT_LIMIT
    assert cut("x" * 10_000) == "x" * (TEXT_LIMIT - 1) + "…"
    assert len(cut("x" * 10_000)) == 256
    body = json.dumps({"kind": "Status", "message": "x\n" * 5000}).encode()
    assert HttpAnswer("GET", "/", 400, {}, body).text() == cut("x " * 5000)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>secret</html>", b"[]", b'{"kind": "Pod", "message": "secret"}', b'{"kind": "Status", "message": 5}'],
)
def test_a_body_that_is_no_status_is_not_repeated(body):
    """A proxy's page never reaches a log; the status code speaks instead, if it is a known one."""
    assert HttpAnswer("GET", "/", 502, {}, body).text() == "Bad Gateway"
    assert HttpAnswer("GET", "/", 599, {}, body).text() == "no explanation"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7),
        ("9" * 5000, math.inf),
        *((text, None) for text in (None, "-5", "1.5", "\u0663", "", "0", "Wed, 21 Oct 2015 07:28:07 GMT")),
    ],
)
def test_the_wait_a_server_asks_for_is_in_the_header(header, expected):
    """A value that is not a number of seconds is ignored."""
    headers = {} if header is None else {"Retry-After": header}

    assert HttpAnswer("GET", "/", 429, headers, b"").retry_after() == expected


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"denied": True}])
@pytest.mark.parametrize(("purpose", "resource"), [(STEERING, "nodes"), (RESTARTING, "deployments")])
def test_a_review_that_does_not_say_yes_says_no(client, server, status, purpose, resource):
    """What the server leaves out is false."""
    server.on(
        "POST",
        "*/selfsubjectaccessreviews",
        lambda _: Reply(201, {"kind": "SelfSubjectAccessReview", "status": status}),
    )

    rule = rf"resources: \[{resource}\]\n.*verbs: \[get, patch\]"
    with pytest.raises(Forbidden, match=rf"no permission to get and patch {resource}(?s:.)*{rule}"):
        demand_writes(client, purpose)
