"""Proxies on the way to the API server: which setting they come from, who they let through, and answers that are lost.

The proxy of these tests opens tunnels to a server that speaks TLS, as all do between kubectl and a cluster.
"""

import pytest

from rebalancer.errors import NoCredentials, Unreachable
from rebalancer.eviction.verdict import GRANTED, Failed
from rebalancer.kube.config import named
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.tries import Halt
from rebalancer.untrusted.address import credentials_for
from tests.fake_proxy import FakeProxy

PROXY = "http://proxy:3128"
EVICTION = "*/eviction"


@pytest.fixture(autouse=True)
def no_exceptions(monkeypatch):
    """Variables that would let a request go without the proxy."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.fixture
def through(secure, client_of, pod):
    """Make a client whose kubeconfig names a proxy, for a server with one pod."""
    secure.add(pod("a"))
    return lambda proxy: client_of(secure, **{"insecure-skip-tls-verify": True, "proxy-url": proxy})


@pytest.mark.parametrize(
    ("environ", "setter"),
    [
        ({"HTTPS_PROXY": PROXY}, "HTTPS_PROXY"),
        ({"HTTPS_PROXY": "http://another:3128", "all_proxy": PROXY}, "all_proxy"),
        ({"HTTPS_PROXY": "http://another:3128"}, "proxy-url of the kubeconfig"),
        ({}, "proxy-url of the kubeconfig"),
    ],
)
def test_the_setting_with_this_value_is_named(environ, setter):
    """Whoever has to change it knows where."""
    assert named(PROXY, environ) == f"the proxy {PROXY} ({setter})"


@pytest.mark.parametrize(
    ("proxy", "shown"),
    [
        ("socks5://proxy:1080", "socks5://proxy:1080"),
        ("ftp://me:secret@proxy:1", "ftp://proxy:1"),
        ("http://me:se/cret@proxy", r"http://\.\.\."),
    ],
)
def test_a_proxy_that_cannot_be_used_is_named_with_the_cure(through, proxy, shown):
    """Before anything is sent."""
    with pytest.raises(NoCredentials, match=rf"^the proxy {shown} \(proxy-url .*\) cannot be used: .* PySocks"):
        through(proxy)


@pytest.fixture
def evict_through(evict, through, time):
    return lambda proxy: evict(by=Evictions(through(proxy.url), time.retry_policy(), Halt()))


@pytest.mark.parametrize("processed", [True, False])
def test_an_answer_that_a_proxy_loses_is_a_doubt(evict_through, secure, processed):
    """A pod that went by a request whose answer was lost counts as evicted, and not as gone without us."""
    secure.reset("POST", EVICTION, processed=processed)
    with FakeProxy() as proxy:
        assert evict_through(proxy) == GRANTED
    asked = [request.method for request in secure.requests]
    assert asked == (["POST", "GET"] if processed else ["POST", "GET", "POST"])
    assert secure.evicted == ["default/a"]


def test_an_eviction_that_a_proxy_does_not_let_through_is_no_doubt(evict_through, secure):
    """Nothing was sent: the pod stays, and costs no limit."""
    with FakeProxy("me:secret") as proxy:
        verdict = evict_through(proxy)
    assert isinstance(verdict, Failed)
    assert "asks for valid credentials (407 Proxy Authentication Required): its address must be like" in verdict.error
    assert secure.requests == []


def test_a_proxy_that_goes_on_losing_answers_is_tried_as_long_as_a_server(through, secure):
    """It is there, unlike one that refuses connections, which is given up after four tries."""
    secure.reset("GET", "/api/v1/pods", times=5)
    with FakeProxy() as proxy:
        assert b"PodList" in through(proxy.url).get("/api/v1/pods")


@pytest.mark.parametrize("password", ["me:secret", "me:", "ü@/:p%40:ss"])
def test_user_and_password_go_to_the_proxy_and_to_nobody_else(through, secure, password):
    """As kubectl and curl do it: percent-encoded in the address, and in UTF-8."""
    with FakeProxy(password) as proxy:
        user, _, secret = password.partition(":")
        encoded = "".join(f"%{byte:02X}" for byte in user.encode()) + ":" + secret.replace("%", "%25")

        through(proxy.url.replace("//", f"//{encoded}@")).get("/api/v1/pods")

        assert [head.split(" ", 1)[0] for head in proxy.heads] == ["CONNECT"]
        assert "the-token" not in proxy.heads[0]
    assert [set(request.headers) & {"proxy-authorization"} for request in secure.requests] == [set()]
    assert secure.requests[0].headers["authorization"] == "Bearer the-token"


@pytest.mark.parametrize("userinfo", ["", "me:wrong-one@"])
def test_a_407_is_told_in_words_and_at_once(through, secure, time, userinfo):
    """Another try would not help; the password is not repeated."""
    with FakeProxy("me:secret") as proxy, pytest.raises(Unreachable) as caught:
        through(proxy.url.replace("//", f"//{userinfo}")).get("/api/v1/pods")

    assert f"the proxy {proxy.url} (proxy-url of the kubeconfig) asks for valid credentials (407" in str(caught.value)
    assert "wrong-one" not in str(caught.value)
    assert len(proxy.heads) == 1
    assert time.waits == []
    assert secure.requests == []


def test_a_407_to_a_request_without_a_tunnel_is_told_in_the_same_words(server, client_of):
    """To a server without TLS a proxy passes on each request, and answers it itself."""
    with FakeProxy("me:secret") as proxy, pytest.raises(Unreachable, match="asks for valid credentials"):
        client_of(server, **{"proxy-url": proxy.url}).get("/api/v1/pods")
    assert server.requests == []


@pytest.mark.parametrize(
    "proxy", ["socks5://me:secret@proxy:1080", "me:secret@proxy:3128", "http://me:se/cret@proxy", PROXY, ""]
)
def test_only_an_http_proxy_with_a_user_gets_a_header(proxy):
    """For a SOCKS proxy the header would reach the API server."""
    assert credentials_for(proxy) == {}
