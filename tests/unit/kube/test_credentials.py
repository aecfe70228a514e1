import io
import math
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace

import pytest

from rebalancer.errors import NoCredentials
from rebalancer.kube.client import Client
from rebalancer.kube.config import Connection, Overrides, connect
from rebalancer.kube.leases import Lease, Leases
from rebalancer.kube.tries import Deadline
from tests.fake_api_server import CERTIFICATE

PODS = "/api/v1/pods"

V1 = "client.authentication.k8s.io/v1"
PLUGIN = f"""#!/bin/sh
cd "$(dirname "$0")"
printf x >> calls
case "$(cat token)" in hang) exec sleep 600;; "") echo "you have to log in" >&2; exit 1;; esac
printf '{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": "%s"}}}}' "$(cat token)"
"""


@pytest.fixture
def client_as(server, client_of):
    return lambda user: client_of(server, user=user)


@pytest.fixture
def counted(connection):
    """A connection that loads the same credentials again and again, and how many seconds it was given each time."""
    given, good = [], connection.access()

    def load(seconds):
        given.append(seconds)
        return good

    return Connection(load, context="fake"), given


@pytest.fixture
def plugin(tmp_path):
    """An exec plugin that hands out what is in the file `token` beside it."""
    path = tmp_path / "plugin"
    path.write_text(PLUGIN)
    path.chmod(0o755)
    return {"exec": {"apiVersion": V1, "command": "./plugin"}}


def authorizations(server):
    return [request.headers.get("authorization") for request in server.requests]


def test_a_token_file_is_read_again_after_a_401(server, client_as, tmp_path):
    """A token that was rotated during the run does not end it."""
    (tmp_path / "token").write_text("the-token\n")
    client = client_as({"tokenFile": "token", "token": "a stale copy"})
    client.get(PODS)
    (tmp_path / "token").write_text("rotated")
    server.token = "rotated"

    client.get(PODS)

    assert authorizations(server) == ["Bearer the-token", "Bearer the-token", "Bearer rotated"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("server", "http://127.0.0.1:1"),
        ("insecure-skip-tls-verify", True),
        ("tls-server-name", "another"),
        ("proxy-url", "http://127.0.0.1:1"),
    ],
)
def test_fresh_credentials_for_another_cluster_are_not_used(server, client_as, tmp_path, key, value):
    """Somebody has changed the context's cluster during the run: nothing goes there, and no new token goes here."""
    client = client_as({"token": "old"})
    server.kubeconfig(tmp_path, user={"token": "the-token"}, **{key: value})

    with pytest.raises(NoCredentials, match=rf"another {key}: start a new run"):
        client.get(PODS)
    assert authorizations(server) == ["Bearer old"]


def test_another_current_context_is_not_followed(server, client_as, tmp_path):
    """`kubectl config use-context` in another window is not about this run."""
    client = client_as({"token": "old"})
    path = server.kubeconfig(tmp_path)
    path.write_text(path.read_text().replace('"current-context": "fake"', '"current-context": "other"'))

    client.get(PODS)

    assert authorizations(server) == ["Bearer old", "Bearer the-token"]


def test_many_threads_load_the_credentials_once(server, client_as, tmp_path, plugin):
    (tmp_path / "token").write_text("old")
    client = client_as(plugin)
    (tmp_path / "token").write_text("the-token")
    together = threading.Barrier(4)
    server.on("GET", PODS, lambda _: together.wait(120), times=4)
    server.token = "old"
    server.on("GET", PODS, lambda _: setattr(server, "token", "the-token"), times=4)
    server.fail("GET", PODS, status=401, times=4)
    threads = [threading.Thread(target=client.get, args=(PODS,)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert authorizations(server) == ["Bearer old"] * 4 + ["Bearer the-token"] * 4
    assert (tmp_path / "calls").read_text() == "xx"


def test_a_plugin_that_hangs_does_not_outlast_the_time_that_is_left(client_as, tmp_path, plugin, caplog):
    """After a signal a last look has 5 s, and so has giving back a lease; a plugin alone may take a minute.

    The error says it all: the line that names a plugin is for whoever waits for it.
    """
    (tmp_path / "token").write_text("the-token")
    found = client_as(plugin).connection
    (tmp_path / "token").write_text("hang")

    with pytest.raises(NoCredentials, match=r"did not answer within 0\.\d+ s and was ended"):
        found.reload(found.access(), 0.2)
    assert caplog.messages == []


def test_loading_credentials_may_take_as_long_as_the_request(server, counted, time):
    """The deadline of a request bounds all that it takes."""
    connection, given = counted
    server.token = "another"
    client = Client(connection, retry_policy=time.retry_policy())

    for each in (client, replace(client, is_patient=True)):
        with pytest.raises(NoCredentials):
            each.look(PODS, deadline=Deadline.after(30.0, time.clock))
    assert given == [math.inf, pytest.approx(30.0, abs=0.01), math.inf]


def test_a_lease_waits_for_a_slow_plugin_but_not_at_its_end(server, counted):
    """A plugin that takes longer than a request for the Lease would be ended each time, and never give credentials."""
    connection, given = counted
    leases = Leases(Client(connection), "kube-system", "rebalancer", 60.0)
    server.leases.held.clear()
    lease = leases.write(Lease("one", 60.0, None, None, 0, ""))
    server.token = "another"

    for act in (leases.read, lambda: leases.write(lease), lambda: leases.write(lease, 50.0)):
        with pytest.raises(NoCredentials):
            act()
    assert given[:3] == [math.inf] * 3
    assert given[3] <= 50.0


def test_nobody_waits_longer_than_that_for_another_thread_that_loads_them(connection):
    begun, go_on, good = threading.Event(), threading.Event(), connection.access()

    def load(seconds):
        if seconds < math.inf:
            begun.set()
            go_on.wait(60.0)
        return good

    shared = Connection(load, context="fake")
    other = threading.Thread(target=shared.reload, args=(good, 60.0))
    other.start()
    try:
        assert begun.wait(60.0)
        with pytest.raises(NoCredentials, match="were not loaded in time"):
            shared.reload(good, 0.0)
    finally:
        go_on.set()
        other.join()


@pytest.mark.parametrize(
    ("user", "header", "value"),
    [
        ({"username": "me", "password": "pass"}, "authorization", "Basic bWU6cGFzcw=="),
        ({"token": "the-token", "as": "deputy"}, "impersonate-user", "deputy"),
        ({"as": "deputy", "as-user-extra": {"X/y": ["view"]}}, "impersonate-extra-x%2fy", "view"),
    ],
)
def test_a_user_is_sent_as_such(server, client_as, user, header, value):
    """Dropped, `as` would act with more rights than the kubeconfig means."""
    with suppress(NoCredentials):  # the server knows one token
        client_as(user).get(PODS)

    assert server.requests[0].headers.get(header) == value


NOBODY, UNSENT = "nobody to act as", "cannot be sent: names to act as are of ASCII characters"
UNSUPPORTED, MALFORMED = "which is not supported", "the exec plugin of context 'fake' is malformed"


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"tokenFile": "missing"}, "context 'fake'"),
        ({"exec": {"command": "x"}}, MALFORMED),
        ({"exec": {"command": "x", "apiVersion": V1, "args": "get-token"}}, MALFORMED),
        ({"exec": {"command": "x", "apiVersion": V1, "env": {"name": "STAGE"}}}, MALFORMED),
        ({"auth-provider": {"name": "oidc", "config": {}}}, "context 'fake'"),
        ({"auth-provider": {"name": "azure", "config": {}}}, f"has the auth-provider 'azure', {UNSUPPORTED}"),
        ({"auth-provider": {"name": None, "config": {}}}, f"has the auth-provider None, {UNSUPPORTED}"),
        ({"token": "the-token", "as-groups": ["few"]}, NOBODY),
        ({"token": "the-token", "as-uid": "7"}, NOBODY),
        ({"token": "the-token", "as-user-extra": {"scopes": ["view"]}}, NOBODY),
        ({"token": "the-token", "as": "d\u00e9puty"}, UNSENT),
        ({"token": "the-token", "as": "deputy\n"}, UNSENT),
        ({"token": "the-token", "as": "deputy", "as-uid": "\u00e9"}, UNSENT),
        ({"token": "the-token", "as": "deputy", "as-groups": ["few", "f\u00e9w"]}, UNSENT),
    ],
)
def test_a_user_that_cannot_be_used_is_an_error_before_anything_is_sent(client_as, user, words):
    """One line, no traceback; a part of an identity does not say whose rights to act with."""
    with pytest.raises(NoCredentials, match=words):
        client_as(user)


@pytest.mark.parametrize("token", ["the\nsecret", "the\x00secret", "thé-secret"])
def test_a_token_that_cannot_be_sent_is_not_shown(client_as, tmp_path, token):
    """The HTTP library would print it."""
    (tmp_path / "token").write_text(token)

    with pytest.raises(NoCredentials, match="characters that are not allowed in a token") as caught:
        client_as({"tokenFile": "token"}).get(PODS)
    assert "secret" not in str(caught.value)


def test_the_kubernetes_package_is_imported_only_to_connect():
    """It costs half a second: `--help` and runs on a file do not pay for it."""
    modules = ", ".join(f"rebalancer.kube.{name}" for name in ("config", "client", "lists", "evictions", "events"))
    check = f"import sys, {modules}; print('kubernetes' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=300)

    assert done.stdout.strip() == "False"


def test_a_plugin_that_may_ask_runs_without_a_standard_input(server, client_as, tmp_path, plugin, monkeypatch):
    """Some launchers close it; there is nobody to ask then."""
    (tmp_path / "token").write_text("the-token")
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdin", closed)
    plugin["exec"] |= {"interactiveMode": "IfAvailable"}

    client_as(plugin).get(PODS)

    assert authorizations(server) == ["Bearer the-token"]


# TLS, and the service account of a pod


@pytest.fixture
def in_pod(secure, tmp_path):
    """Connect with a service account as a pod of the server's cluster has it."""

    def make(token="the-token\n", authority="", **settings):
        (tmp_path / "ca.crt").write_text(authority or CERTIFICATE.read_text())
        (tmp_path / "token").write_text(token)
        host, port = secure.url.removeprefix("https://").split(":")
        environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        return connect(None, None, environ=environ, service_account=tmp_path, **settings)

    return make


def test_a_pod_reaches_its_own_cluster(in_pod, secure, tmp_path, time):
    """The service account's token and authority; after a 401 a rotated token is picked up, and a renewed authority."""
    client = Client(in_pod(), retry_policy=time.retry_policy())
    client.get(PODS)
    (tmp_path / "token").write_text("rotated\n")
    (tmp_path / "ca.crt").write_text(f"{CERTIFICATE.read_text()}\n")
    secure.token = "rotated"

    assert b"PodList" in client.get(PODS)
    assert len(secure.requests) == 3


def test_the_command_line_goes_above_a_service_account(in_pod, secure, time):
    """Whom to act as, and that the certificate is not looked at."""
    overrides = Overrides(user="deputy", groups=("few",), insecure=True)
    connection = in_pod(authority="not the authority of this server", overrides=overrides)

    assert b"PodList" in Client(connection, retry_policy=time.retry_policy()).get(PODS)
    assert secure.requests[0].headers["impersonate-group"] == "few"


def test_fresh_credentials_with_another_authority_are_not_used(client_of, secure, tmp_path):
    """The file is the same, what stands in it is not: whoever can write it could stand in for the server."""
    authority = tmp_path / "ca.crt"
    authority.write_bytes(CERTIFICATE.read_bytes())
    client = client_of(secure, **{"certificate-authority": str(authority)})
    client.get(PODS)
    secure.token = "another"
    authority.write_bytes(CERTIFICATE.read_bytes() + b"\n")

    with pytest.raises(NoCredentials, match="another certificate-authority: start a new run"):
        client.get(PODS)
    assert len(secure.requests) == 2
