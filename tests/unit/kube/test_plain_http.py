"""No credentials over plain http to an API server, unless its kubeconfig allows it."""

import pytest

from rebalancer.errors import NoCredentials

ALLOWED = [{"name": "rebalancer", "extension": {"allowTokenOverHTTP": True}}]


@pytest.fixture
def connection(server, client_of):
    """Connect with a kubeconfig of this server's address and this user."""
    return lambda address, user, extensions=None: (
        client_of(server, user=user or {"token": ""}, server=address, extensions=extensions).connection
    )


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
