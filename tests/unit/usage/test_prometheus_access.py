"""How Prometheus is reached: certificates, credentials, deadlines, and what is said when it is not."""

import threading
from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from rebalancer.errors import StrategyError
from tests.fake_http import Reply
from tests.fake_servers import FakePrometheus, sample
from tests.make import NOW, cluster, pod
from tests.unit.usage.settings import Sources, nodes, prometheus

QUERY = {"query": "up"}
SPELLINGS = ["http://", "HTTP://", "  hTTp://", "\thttp://", "\nHttp://"]


SAMPLES = [sample("n1", 0.5), sample("n2", 0.25)]


@pytest.fixture
def server():
    with FakePrometheus(SAMPLES) as running:
        yield running


@pytest.fixture
def secure():
    with FakePrometheus(SAMPLES, tls=True) as running:
        yield running


def ask(url, *, secret=None, service_account=None, count=2, min_fresh=80, **fields):
    given = {} if secret is None else {"secret": secret}
    sources = Sources(prometheus(url, **fields), service_account=service_account, **given)
    on = cluster(nodes(count), [])
    return sources.measure(on, source="Prometheus", minFreshNodes=min_fresh, prometheus=QUERY)


def sent(server) -> str | None:
    return server.requests[-1].headers.get("authorization")


@pytest.fixture
def in_pod(secure, tmp_path):
    """A pod's service account, in a cluster whose authority is that of the server."""
    (tmp_path / "token").write_text("the-pods-token\n")
    (tmp_path / "ca.crt").write_bytes(secure.certificate.read_bytes())
    return tmp_path


def test_queries_are_about_the_time_of_the_cycle(server):
    """A snapshot from yesterday is compared with yesterday's load; and nothing is sent along unasked."""
    found = ask(server.url + "/")

    (request,) = server.requests
    assert (request.path, dict(request.query)) == ("/api/v1/query", {"query": "up", "time": f"{NOW.timestamp():.3f}"})
    assert sent(server) is None
    assert found.nodes == {"n1": {"MetricResource": 50}, "n2": {"MetricResource": 25}}


def test_one_query_is_asked_once_a_cycle(server):
    """However many strategies want to know, and also if there was no answer."""
    sources = Sources(prometheus(server.url))
    for query in ("up", "up", "down", "down"):
        if query == "down":
            server.answers = lambda _: Reply(422, {"status": "error", "error": "too many samples"})
        with pytest.raises(StrategyError, match="HTTP 422, too many samples") if query == "down" else nullcontext():
            sources.measure(cluster(nodes(2), []), source="Prometheus", prometheus={"query": query})

    assert server.queries == ["up", "down"]


@pytest.mark.parametrize(
    ("field", "header"),
    [
        (lambda path: {"tokenFile": path}, "Bearer s3cret"),
        (lambda path: {"basicAuth": {"username": "me", "passwordFile": path}}, "Basic bWU6czNjcmV0"),
        (lambda path: {"basicAuth": {"username": "€", "passwordFile": path}}, "Basic 4oKsOnMzY3JldA=="),
    ],
)
def test_a_token_or_a_password_may_be_in_a_file(server, tmp_path, field, header):
    """Which may end with a line end; over plain http only because the policy allows it."""
    (tmp_path / "secret").write_text("s3cret\n")
    ask(server.url, **field(str(tmp_path / "secret")), allowTokenOverHTTP=True)

    assert sent(server) == header


def test_a_token_may_be_in_a_secret(secure):
    """Its namespace and name are the policy's; if it cannot be read the strategy fails with the reader's own words."""
    token = {"authToken": {"secretReference": {"namespace": "monitoring", "name": "token"}}}
    ask(
        secure.url,
        secret=lambda reference: f"{reference.namespace}-{reference.name}",
        caFile=str(secure.certificate),
        **token,
    )

    assert sent(secure) == "Bearer monitoring-token"
    with pytest.raises(StrategyError, match="not meant to be read"):
        ask(secure.url, **token)


def test_in_a_pod_its_own_token_and_authority_are_used(secure, server, in_pod):
    """The descheduler's in-cluster mode; over plain http the token stays at home."""
    ask(secure.url, service_account=in_pod)
    ask(server.url, service_account=in_pod)

    assert (sent(secure), sent(server)) == ("Bearer the-pods-token", None)


def test_another_authority_is_trusted_by_ca_file_only(secure):
    """Without it the certificate is not trusted, which is said at once."""
    with pytest.raises(StrategyError, match=r"is not trusted: .*self-signed certificate.*caFile"):
        ask(secure.url)
    assert secure.requests == []
    ask(secure.url, caFile=str(secure.certificate))

    assert len(secure.requests) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"caFile": "/nowhere/ca.crt"}, "caFile /nowhere/ca.crt cannot be read"),
        ({"tokenFile": "/nowhere/token"}, "/nowhere/token cannot be read: No such file"),
        ({"basicAuth": {"username": "me", "passwordFile": "/nowhere/word"}}, "/nowhere/word cannot be read"),
        ({"tokenFile": "empty"}, "holds no token"),
        ({"tokenFile": "lines"}, "holds no token"),
        ({"tokenFile": "umlaut"}, "holds no token"),
    ],
)
def test_a_file_that_is_not_there_is_named(secure, tmp_path, monkeypatch, fields, message):
    """So is one that may not be read, or that holds what no header can hold."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("empty", ""), ("lines", "two\nlines"), ("umlaut", "schlüssel")):
        (tmp_path / name).write_text(text)

    with pytest.raises(StrategyError, match=message):
        ask(secure.url, **fields)


def test_a_server_that_is_down_is_told_within_seconds():
    """After three tries; the message has the address and the system's reason."""
    with FakePrometheus() as server:
        url = server.url

    with pytest.raises(StrategyError, match=rf"Prometheus at {url} does not answer: Connection refused"):
        ask(url)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://a..b:1"])
def test_a_proxy_that_cannot_be_used_is_not_taken_for_a_server(monkeypatch, proxy):
    monkeypatch.setenv("ALL_PROXY", proxy)

    with pytest.raises(StrategyError, match="cannot be asked: its URL or that of a proxy cannot be used"):
        ask("http://prometheus.example:9090")


def test_a_proxy_gets_its_password_in_utf_8(server, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", server.url.replace("://", "://me:%E2%82%AC@"))
    ask("http://prometheus.example:9090")

    assert server.requests[-1].headers["proxy-authorization"] == "Basic bWU64oKs"


@pytest.mark.parametrize("part", ["headers", "body"])
def test_an_answer_that_drips_is_given_up_at_the_timeout(server, request, part):
    """Each byte comes in time, the whole does not; the connection is closed, so that its thread ends."""
    over = threading.Event()
    request.addfinalizer(over.set)
    server.answers = lambda _: Reply(200, {}, dripping=part, over=over)
    before = set(threading.enumerate())

    with pytest.raises(StrategyError, match=r"did not answer within 0.3 s \(its timeout in metricsProviders\)"):
        ask(server.url, timeout="300ms")
    asking = [each for each in set(threading.enumerate()) - before if each.name == "request"]
    for each in asking:
        each.join(10)
    assert not any(each.is_alive() for each in asking)


def one(*given, **fields):
    """The answer with this series, and another one."""
    return {"data": {"result": [sample(*given, **fields), SAMPLES[1]]}}


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, "who are you", r"does not accept the credentials \(HTTP 401, who are you\)"),
        (403, {"error": "forbidden"}, r"does not accept the credentials \(HTTP 403, forbidden\)"),
        (404, "404 page not found", r"has nothing at this address \(HTTP 404.*check the url"),
        (200, "<html>hello</html>", "is not Prometheus"),
        (200, {"hello": "world"}, "is not Prometheus"),
        (204, "", "is not Prometheus"),
        (200, one("\ud800", 0.5), "is not Prometheus"),  # a text that no report can hold
        (200, {"data": {"result": 3}}, "gives no instant vector"),
        # As in the descheduler, and NaN too, of which it makes a number by chance.
        (200, one("n1", "NaN"), "has the value nan, which is not between 0 and 1"),
        (200, one("n1", 1.0001), "has the value 1.0001, which"),
        (200, one("n1", -0.1), "has the value -0.1, which"),
        (200, one("n1", 0.5, label="node"), r'\{node="n1"\} has no label instance'),
    ],
)
def test_what_is_not_an_answer_is_explained(server, status, body, message):
    server.answers = lambda _: Reply(status, body)

    with pytest.raises(StrategyError, match=message):
        ask(server.url)
    assert len(server.requests) == 1


@pytest.mark.parametrize("trouble", [Reply(503, "busy"), Reply(429, "later"), Reply(0, None, lost=True)])
def test_trouble_that_passes_is_waited_for(server, trouble):
    """The same query again, at most three times in all."""
    server.answers = lambda _: trouble if len(server.requests) < 3 else server.answer(server.requests[-1])
    assert ask(server.url).nodes["n1"] == {"MetricResource": 50}

    server.answers = lambda _: trouble
    with pytest.raises(StrategyError, match=r"refuses: HTTP|does not answer"):
        ask(server.url)
    assert len(server.requests) == 6


def test_the_servers_warnings_are_passed_on(server):
    """Those about the query that was asked, also where its answer was kept."""

    def answer(request):
        server.warnings = ["store gateway down"] if request.query["query"] == "shaky" else []
        return server.answer(request)

    server.answers, sources, on = answer, Sources(prometheus(server.url)), cluster(nodes(2), [])
    asked = ("shaky", "sound", "shaky")
    found = [sources.measure(on, source="Prometheus", prometheus={"query": each}).warnings for each in asked]

    said = ("Prometheus says: store gateway down",)
    assert found == [said, (), said]


def test_what_it_says_of_earlier_days_is_passed_on_too(server):
    nothing = {"resultType": "matrix", "result": []}
    earlier = Reply(200, {"status": "success", "data": nothing, "warnings": ["blocks are missing"]})
    server.answers = lambda request: earlier if request.path.endswith("range") else server.answer(request)
    asked = {"nodes": {"cpu": {"query": "up", "unit": "cores"}}, "coming": {"sameHour": "4d"}}

    on = cluster(nodes(2), [])
    found = Sources(prometheus(server.url)).measure(on, source="Prometheus", selection="relief", prometheus=asked)

    assert found.warnings == ("Prometheus says: blocks are missing",)


def test_figures_of_the_form_of_the_descheduler(server):
    """Percent are cut off, not rounded; a node without a sample is missing; others are counted."""
    server.result = [sample("n1", 0.509), sample("n2", 0.29), sample("n9", 1), sample("n2", 0.3), sample("n3", "1")]
    found = ask(server.url, count=4, min_fresh=75)

    assert found.nodes == {name: {"MetricResource": each} for name, each in {"n1": 50, "n2": 30, "n3": 100}.items()}
    assert found.missing == {"n4": "no sample"}
    assert found.pods is None
    assert found.warnings[0] == "1 series are about no node of the cluster, the first has instance 'n9'"


@pytest.mark.parametrize("order", [1, -1])
def test_an_address_is_that_of_the_node_that_is_ready(server, order):
    """In whichever order they are listed: the node that had it before may be there for a while."""
    by_address = {"query": "nodes", "unit": "cores", "node": {"match": "internalIP", "label": "instance"}}
    was = replace(nodes(1)[0], name="was-n1", ready=False)
    server.result = [sample("10.0.0.1:9100", 1), sample("10.0.0.2:9100", 1)]
    on = cluster([*nodes(2), was][::order], [])
    found = Sources(prometheus(server.url)).measure(on, source="Prometheus", prometheus={"nodes": {"cpu": by_address}})

    assert found.nodes.keys() == {"n1", "n2"}


def measured_pods(server, *samples):
    """What is measured where n1 uses one core and the pod a runs there, by these series of the pod."""
    results = {"nodes": [sample("n1", 1), sample("n2", 1)], "pods": samples}
    server.answers = lambda request: Reply(200, {"data": {"result": results[request.query["query"]]}})
    pods = {"cpu": {"query": "pods", "unit": "cores", "node": {"label": "node"}}}
    wanted = {"nodes": {"cpu": {"query": "nodes", "unit": "cores"}}, "pods": pods}
    on = cluster(nodes(2), [pod("a", node="n1")])
    return Sources(prometheus(server.url)).measure(on, source="Prometheus", prometheus=wanted)


def of_pod(node, value, **labels):
    return sample(node, value, label="node", namespace="default", pod="a", **labels)


@pytest.mark.parametrize("order", [1, -1])
def test_of_a_pod_that_moved_its_present_node_counts(server, order):
    """In whichever order Prometheus gives the series that a window knows; two nodes have left the cluster since."""
    series = [of_pod("n1", 0.2), of_pod("n2", 0.6), of_pod("gone", 0.7), of_pod("gone-too", 0.8)]
    found = measured_pods(server, *series[::order])

    assert found.pods == {("default", "a"): {"cpu": 200}}
    assert found.pod_nodes == {("default", "a"): "n1"}


def test_two_series_of_a_pod_on_a_node_that_left_are_an_error(server):
    """So are those of a wrong label: each might be a container of the pod."""
    with pytest.raises(StrategyError, match=r"two series for pod default/a: .*sum by \(namespace, pod\)"):
        measured_pods(server, *(of_pod("gone", 0.7, container=name) for name in "xy"))


def test_what_a_pod_used_on_another_node_does_not_contradict_its_present_one(server):
    """A StatefulSet's pod of the same name ran on n2 until a minute ago."""
    found = measured_pods(server, of_pod("n2", 3))

    assert found.nodes == {"n1": {"cpu": 1000}, "n2": {"cpu": 1000}}


def respelled(server, spelling, userinfo=""):
    return server.url.replace("http://", spelling + userinfo)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("way", ["tokenFile", "basicAuth", "what the url has before its @"])
def test_nothing_is_sent_over_plain_http(server, tmp_path, spelling, way):
    """The strategy fails before a request; the message tells the address without userinfo, and the cures.

    Nor does load-watcher get a password.
    """
    (tmp_path / "secret").write_text("s3cret\n")
    file = str(tmp_path / "secret")
    fields, userinfo = {
        "tokenFile": ({"tokenFile": file}, ""),
        "basicAuth": ({"basicAuth": {"username": "me", "passwordFile": file}}, ""),
        "what the url has before its @": ({}, "me:s3cret@"),
    }[way]

    with pytest.raises(StrategyError, match=f"{way} is not sent over plain http .*https, or set allowTokenOver") as it:
        ask(respelled(server, spelling, userinfo), **fields)
    watcher = {"source": "LoadWatcher", "loadWatcher": {"url": respelled(server, spelling, "me:s3cret@")}}
    with pytest.raises(StrategyError, match="credentials are not sent over plain http") as either:
        Sources(watcher).measure(cluster(nodes(2), []), source="LoadWatcher")

    assert server.requests == []
    assert "s3cret" not in f"{it.value} {either.value}"


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


@pytest.mark.parametrize("url", ["http:me:s3cret@host", "//me:s3cret@host", "me:s3cret@host", "ftp://me:s3cret@host"])
def test_an_address_that_is_none_is_shown_without_userinfo(url):
    with pytest.raises(StrategyError, match=r"is not a URL|has an @") as caught:
        ask(url)
    assert "s3cret" not in str(caught.value)
