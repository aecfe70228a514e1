"""No credentials over plain http, however the address is spelled and wherever they come from."""

import pytest

from rebalancer.errors import StrategyError
from tests.fake_http import Reply
from tests.make import cluster
from tests.unit.usage.settings import Sources, nodes, prometheus

QUERY = {"query": "up"}
SPELLINGS = ["http://", "HTTP://", "  hTTp://", "\thttp://", "\nHttp://"]


def ask(url, **fields):
    return Sources(prometheus(url, **fields)).measure(cluster(nodes(2), []), source="Prometheus", prometheus=QUERY)


def respelled(server, spelling, userinfo=""):
    return server.url.replace("http://", spelling + userinfo)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("way", ["tokenFile", "basicAuth", "what the url has before its @"])
def test_nothing_is_sent_over_plain_http(server, tmp_path, spelling, way):
    """The strategy fails before a request; the message tells the address without userinfo, and the cures."""
    (tmp_path / "secret").write_text("s3cret\n")
    file = str(tmp_path / "secret")
    fields, userinfo = {
        "tokenFile": ({"tokenFile": file}, ""),
        "basicAuth": ({"basicAuth": {"username": "me", "passwordFile": file}}, ""),
        "what the url has before its @": ({}, "me:s3cret@"),
    }[way]

    with pytest.raises(StrategyError, match=f"{way} is not sent over plain http .*https, or set allowTokenOver") as it:
        ask(respelled(server, spelling, userinfo), **fields)

    assert server.requests == []
    assert "s3cret" not in str(it.value)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_may_be_allowed_in_so_many_words(server, spelling):
    ask(respelled(server, spelling, "me:s3cret@"), allowTokenOverHTTP=True)

    assert server.requests[-1].headers["authorization"] == "Basic bWU6czNjcmV0"


def test_userinfo_goes_over_https_and_is_not_shown(secure):
    url = secure.url.replace("https://", " HTTPS://me:s3cret@")
    ask(url, caFile=str(secure.certificate))
    assert secure.requests[-1].headers["authorization"] == "Basic bWU6czNjcmV0"

    secure.answers = lambda _: Reply(404, "nothing")
    with pytest.raises(StrategyError, match="nothing at this address") as caught:
        ask(url, caFile=str(secure.certificate))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("allowed", [False, True])
def test_the_home_directory_is_not_searched_for_passwords(server, tmp_path, monkeypatch, allowed):
    """What ~/.netrc says of the server is for other programs, also after a redirect."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password s3cret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    first = Reply(307, "", {"Location": f"{server.url}/api/v1/query?query=up"})
    server.answers = lambda _: first if len(server.requests) == 1 else server.answer(server.requests[-1])

    ask(server.url, allowTokenOverHTTP=allowed)

    assert [request.headers.get("authorization") for request in server.requests] == [None, None]


def test_a_redirect_to_plain_http_takes_no_credentials_along(secure, server, tmp_path):
    (tmp_path / "token").write_text("s3cret")
    secure.answers = lambda _: Reply(307, "", {"Location": f"{server.url}/api/v1/query?query=up"})

    ask(secure.url, tokenFile=str(tmp_path / "token"), caFile=str(secure.certificate))

    assert secure.requests[-1].headers["authorization"] == "Bearer s3cret"
    assert server.requests[-1].headers.get("authorization") is None


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_load_watcher_gets_no_password_over_plain_http_either(server, spelling):
    given = {"source": "LoadWatcher", "loadWatcher": {"url": respelled(server, spelling, "me:s3cret@")}}

    with pytest.raises(StrategyError, match="credentials are not sent over plain http") as caught:
        Sources(given).measure(cluster(nodes(2), []), source="LoadWatcher")

    assert server.requests == []
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http:me:s3cret@host", "//me:s3cret@host", "me:s3cret@host", "ftp://me:s3cret@host"])
def test_an_address_that_is_none_is_shown_without_userinfo(url):
    with pytest.raises(StrategyError, match=r"is not a URL|has an @") as caught:
        ask(url)
    assert "s3cret" not in str(caught.value)
