"""No credentials over plain http to an API server, unless its kubeconfig allows it."""

import pytest

from rebalancer.errors import NoCredentials
from rebalancer.kube.config import connect

ALLOWED = [{"name": "rebalancer", "extension": {"allowTokenOverHTTP": True}}]


@pytest.fixture
def connection(server, tmp_path):
    """Connect with a kubeconfig of this server's address and this user."""

    def make(address, user, extensions=None):
        path = server.kubeconfig(tmp_path, user=user or {"token": ""}, server=address, extensions=extensions)
        return connect(str(path), None, environ={})

    return make


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "HTTP://host", " http://host", "http://localhost/"])
@pytest.mark.parametrize(
    "user",
    [
        {"token": "s3cret"},
        {"tokenFile": "/nowhere"},
        {"username": "me", "password": "s3cret"},
        {"exec": {"command": "/nowhere", "apiVersion": "client.authentication.k8s.io/v1"}},
        {"auth-provider": {"name": "oidc"}},
        {"client-certificate-data": "eA==", "client-key-data": "eA=="},
    ],
    ids=lambda user: next(iter(user)),
)
def test_credentials_stay_here(connection, address, user):
    """No file of them is read and no plugin is started; the message names the kind and the cures."""
    with pytest.raises(NoCredentials, match=rf"credentials \({next(iter(user))}\) are not sent over plain http") as it:
        connection(address, user)
    assert "allowTokenOverHTTP" in str(it.value)
    assert "s3cret" not in str(it.value)


def test_userinfo_in_the_address_is_a_credential(connection):
    with pytest.raises(NoCredentials, match="not sent over plain http") as caught:
        connection("http://me:s3cret@host", {})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "extensions", [None, [], "x", ["x"], [{"name": "other", "extension": {"allowTokenOverHTTP": True}}]]
)
def test_only_the_very_words_allow_it(connection, extensions):
    """`true` in our own extension, and nothing else."""
    with pytest.raises(NoCredentials, match="plain http"):
        connection("http://host", {"token": "t"}, extensions)
    with pytest.raises(NoCredentials, match="plain http"):
        connection("http://host", {"token": "t"}, [{"name": "rebalancer", "extension": {"allowTokenOverHTTP": "true"}}])


def test_it_may_be_allowed(connection):
    """In the cluster's entry, where whoever writes it knows the way to the server."""
    assert connection(" HTTP://host", {"token": "t"}, ALLOWED).access().headers()["Authorization"] == "Bearer t"


def test_without_credentials_plain_http_is_fine(connection):
    """As with `kubectl proxy`."""
    found = connection("http://127.0.0.1:8001/", {})

    assert found.server == "http://127.0.0.1:8001"
    assert "Authorization" not in found.access().headers()


def test_an_https_address_is_shown_without_userinfo(connection):
    """In reports, questions, errors and snapshots, which all take it from here."""
    assert connection("https://me:s3cret@host:6443/path/", {"token": "t"}).server == "https://host:6443/path"
