import pytest

from rebalancer.kube.answers import TEXT_LIMIT, HttpAnswer, cut, verb_and_resource


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


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>secret</html>", b"[]", b'{"kind": "Pod", "message": "secret"}', b'{"kind": "Status", "message": 5}'],
)
def test_a_body_that_is_no_status_is_not_repeated(body):
    """A proxy's page never reaches a log; the status code speaks instead."""
    assert HttpAnswer(502, {}, body).text() == "Bad Gateway"


def test_an_unknown_status_code_has_a_text_too():
    """599 is not a code of the standard library's."""
    assert HttpAnswer(599, {}, b"").text() == "no explanation"


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({"Retry-After": "7"}, b"", 7.0),
        ({"Retry-After": "7"}, b'{"kind": "Status", "details": {"retryAfterSeconds": 3}}', 7.0),
        ({}, b'{"kind": "Status", "details": {"retryAfterSeconds": 3}}', 3.0),
        ({}, b'{"kind": "Status", "details": {}}', None),
    ],
)
def test_the_wait_a_server_asks_for_is_in_the_header_or_in_the_status(headers, body, expected):
    """The new place counts before the old one; what is not a number of seconds is not an answer."""
    assert HttpAnswer(429, headers, body).retry_after() == expected
