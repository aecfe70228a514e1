from pathlib import Path

import pytest
import yaml

from rebalancer.errors import NoCredentials
from rebalancer.kube.config import connect, read


def write(path, *contexts, current="", cluster=None, user=None):
    """Write a kubeconfig in which each context has a cluster and a user of its own name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "contexts": [{"name": each, "context": {"cluster": each, "user": each}} for each in contexts],
        "clusters": [{"name": each, "cluster": cluster or {"server": f"https://{each}:6443"}} for each in contexts],
        "users": [{"name": each, "user": user or {"token": each}} for each in contexts],
    }
    path.write_text(yaml.safe_dump(document | ({"current-context": current} if current else {})))
    return path


@pytest.fixture
def account(tmp_path):
    (tmp_path / "account").mkdir()
    (tmp_path / "account" / "token").write_text("pod-token\n")
    (tmp_path / "account" / "ca.crt").write_text("a certificate")
    return tmp_path / "account"


@pytest.fixture
def environ(tmp_path):
    """The environment of a pod whose user has a home with a kubeconfig."""
    write(tmp_path / "home" / ".kube" / "config", "home", current="home")
    return {"HOME": str(tmp_path / "home"), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_the_explicit_file_comes_first(tmp_path, environ):
    """--kubeconfig is used alone: KUBECONFIG does not mix in."""
    environ["KUBECONFIG"] = str(write(tmp_path / "listed", "listed", current="listed"))
    explicit = write(tmp_path / "explicit", "explicit", current="explicit")

    connection = connect(str(explicit), None, environ=environ)

    assert (connection.context, connection.server) == ("explicit", "https://explicit:6443")
    assert not connection.in_cluster
    with pytest.raises(NoCredentials, match=r"no context 'listed': there is explicit"):
        connect(str(explicit), "listed", environ=environ)


def test_the_files_of_kubeconfig_come_second(tmp_path, environ):
    """They are merged: the first current-context and the first of two equal names count."""
    one = write(tmp_path / "one", "a", cluster={"server": "https://first:1"})
    two = write(tmp_path / "two", "a", "b", current="b", cluster={"server": "https://second:2"})
    three = write(tmp_path / "three", "c", current="c")
    environ["KUBECONFIG"] = f"{one}:{two}:{tmp_path / 'missing'}:{three}"

    assert connect(None, None, environ=environ).context == "b"
    assert connect(None, "a", environ=environ).server == "https://first:1"
    assert connect(None, "c", environ=environ).server == "https://c:6443"


def test_the_home_comes_third(environ, account, monkeypatch):
    """It counts for more than being in a pod; a service may be started without the variable."""
    assert connect(None, None, environ=environ, service_account=account).server == "https://home:6443"

    monkeypatch.setenv("HOME", environ.pop("HOME"))  # this process has one, what it looks at has none
    assert connect(None, None, environ=environ, service_account=account).server == "https://home:6443"


@pytest.mark.parametrize("kubeconfig", ["/dev/null", "/missing/a:/missing/b"])
def test_the_pod_comes_last(environ, account, kubeconfig):
    """Where KUBECONFIG leads to nothing, the service account is the way in."""
    environ["KUBECONFIG"] = kubeconfig

    connection = connect(None, None, environ=environ, service_account=account)

    assert (connection.context, connection.server, connection.in_cluster) == (None, "https://10.0.0.1:443", True)
    assert connection.access().headers()["Authorization"] == "bearer pod-token"


@pytest.mark.parametrize(
    ("kubeconfig", "context", "account", "message"),
    [
        ("two", "prd", "account", r"no context 'prd': there is dev, prod$"),
        ("two", None, "account", r"no current-context: choose one with --context \(dev, prod\)"),
        ("missing", None, "account", "does not exist: give another one with --kubeconfig"),
        (".", None, "account", r"cannot be read: Is a directory$"),
        (None, "prod", "account", "'prod' needs a kubeconfig"),
        (None, None, "nothing", r"the pod's service account cannot be used: .*token"),
    ],
)
def test_what_leads_nowhere_is_told(tmp_path, environ, kubeconfig, context, account, message):
    """A context is never guessed, nor traded for the pod's own cluster: who names one means no other cluster."""
    environ["KUBECONFIG"] = "/dev/null"
    write(tmp_path / "two", "prod", "dev")

    with pytest.raises(NoCredentials, match=message):
        connect(kubeconfig and str(tmp_path / kubeconfig), context, environ=environ, service_account=tmp_path / account)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a: [secret", "is not YAML: look in line"),
        ("- secret", "its top level is not a mapping"),
        ("secret: " + "9" * 5000, "cannot be used: it has a value that cannot be read"),
        ("[" * 65 + "secret", "cannot be used: it is nested deeper than 64 levels"),
        ("contexts: secret", "contexts is not a list of `name` and `context` pairs"),
        ("users: [{name: a, user: secret}]", "users is not a list of `name` and `user` pairs"),
        ("clusters: [{cluster: {}}]", "clusters is not a list"),
        ("\xff secret", "kubeconfig"),
        ("{current-context: a}", "has no context 'a': there is none"),
        ("{current-context: a, contexts: [{name: a, context: {}}]}", "names cluster '', which is not there"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], clusters: [{name: b}]}",
            "names user 'c', which is not there",
        ),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b}]}",
            "the server of context 'a' is '', which is not an https:// address",
        ),
    ],
)
def test_a_file_that_is_wrong_is_named_with_the_place(tmp_path, text, message):
    """One line, no traceback, and nothing of what the file keeps secret."""
    path = tmp_path / "config"
    path.write_bytes(text.encode("latin-1"))

    with pytest.raises(NoCredentials, match=message) as caught:
        connect(str(path), None, environ={})
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_paths_are_relative_to_their_own_file(tmp_path, monkeypatch):
    """Wherever the program is started; a plugin on PATH stays one."""
    write(
        tmp_path / "a" / "config",
        "a",
        cluster={"server": "https://a", "certificate-authority": "ca.crt"},
        user={"tokenFile": "/abs/token", "client-key": "../key", "exec": {"command": "./plugin"}},
    )
    write(tmp_path / "b" / "config", "b", user={"exec": {"command": "aws"}})
    monkeypatch.chdir(tmp_path / "a")

    found = read([Path("config"), Path("../b/config")])

    assert found is not None
    assert found.clusters["a"]["certificate-authority"] == str(tmp_path / "a" / "ca.crt")
    assert found.users["a"]["tokenFile"] == "/abs/token"
    assert Path(str(found.users["a"]["client-key"])).resolve() == tmp_path / "key"
    assert found.users["a"]["exec"] == {"command": str(tmp_path / "a" / "plugin")}
    assert found.users["b"]["exec"] == {"command": "aws"}


# No credentials over plain http to an API server, unless its kubeconfig allows it

ALLOWED = [{"name": "rebalancer", "extension": {"allowTokenOverHTTP": True}}]


@pytest.fixture
def connection(tmp_path):
    """Connect with a kubeconfig of this address and this user."""

    def make(address, user, extensions=None):
        cluster = {"server": address, "extensions": extensions}
        path = write(tmp_path / "config", "a", current="a", cluster=cluster, user=user or {"token": ""})
        return connect(str(path), None, environ={})

    return make


@pytest.mark.parametrize(
    ("address", "user"),
    [
        ("http://127.0.0.1:1", {"token": "s3cret"}),
        ("HTTP://host", {"tokenFile": "/nowhere"}),
        (" http://host", {"username": "me", "password": "s3cret"}),
        ("http://localhost/", {"exec": {"command": "/nowhere", "apiVersion": "client.authentication.k8s.io/v1"}}),
        ("http://host", {"auth-provider": {"name": "oidc"}}),
        ("http://host", {"client-certificate-data": "eA==", "client-key-data": "eA=="}),
        ("http://me:s3cret@host", {}),
    ],
)
def test_credentials_stay_here(connection, address, user):
    """No file of them is read and no plugin is started; the message names the kind and the cures."""
    kind = next(iter(user), "what the address has before its @")
    with pytest.raises(NoCredentials, match=rf"credentials \({kind}\) are not sent over plain http") as it:
        connection(address, user)
    assert "allowTokenOverHTTP" in str(it.value)
    assert "s3cret" not in str(it.value)


@pytest.mark.parametrize(
    "extensions",
    [None, "x", ["x"], [ALLOWED[0] | {"name": "other"}], [ALLOWED[0] | {"extension": {"allowTokenOverHTTP": "true"}}]],
)
def test_only_the_very_words_allow_it(connection, extensions):
    """`true` in our own extension, and nothing else."""
    with pytest.raises(NoCredentials, match="plain http"):
        connection("http://host", {"token": "t"}, extensions)


@pytest.mark.parametrize(
    ("address", "user", "extensions", "server"),
    [
        (" HTTP://host", {"token": "t"}, ALLOWED, "http://host"),
        ("http://127.0.0.1:8001/", {}, None, "http://127.0.0.1:8001"),
        ("https://me:s3cret@host:6443/path/", {"token": "t"}, None, "https://host:6443/path"),
    ],
    ids=["allowed", "nothing to send, as with `kubectl proxy`", "not shown"],
)
def test_an_address_is_shown_without_userinfo(connection, address, user, extensions, server):
    """In reports, questions, errors and snapshots, which all take it from here."""
    found = connection(address, user, extensions)

    assert found.server == server
    assert found.access().headers().get("Authorization") == ("Bearer t" if user else None)
