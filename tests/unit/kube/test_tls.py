import json

import pytest

from rebalancer.errors import Unreachable
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from tests.fake_api_server import CERTIFICATE, FakeApiServer

PODS = "/api/v1/pods"


@pytest.fixture
def secure():
    """A server that speaks HTTPS, with a certificate that nobody else trusts."""
    with FakeApiServer(tls=True) as running:
        yield running


@pytest.fixture
def client_of(secure, tmp_path, time):
    """Make a client whose kubeconfig has these settings for the cluster."""
    opened = []

    def make(**cluster) -> Client:
        path = secure.kubeconfig(tmp_path)
        document = json.loads(path.read_text())
        document["clusters"][0]["cluster"] |= cluster
        path.write_text(json.dumps(document))
        opened.append(connect(str(path), None, environ={}))
        return Client(opened[-1], patience=time.patience())

    yield make
    for connection in opened:
        connection.close()


def test_a_certificate_that_is_not_trusted_is_told_at_once(client_of, secure, time):
    """Trying again does not help; the message says where to look, and nothing was sent."""
    with pytest.raises(Unreachable, match=r"certificate of the API server https://.* is not trusted: .*self-signed"):
        client_of().get(PODS)
    assert (secure.requests, time.waits) == ([], [])


def test_the_clusters_own_authority_is_trusted(client_of):
    """certificate-authority is what a kubeconfig has it for."""
    assert b"PodList" in client_of(**{"certificate-authority": str(CERTIFICATE)}).get(PODS)


def test_a_kubeconfig_may_ask_for_less(client_of):
    """insecure-skip-tls-verify is the user's own word, and earns no warning for each request."""
    assert b"PodList" in client_of(**{"insecure-skip-tls-verify": True}).get(PODS)


def test_a_pod_reaches_its_own_cluster(secure, tmp_path, time):
    """The service account's token and authority; a rotated token is picked up after a 401."""
    (tmp_path / "ca.crt").write_bytes(CERTIFICATE.read_bytes())
    (tmp_path / "token").write_text("the-token\n")
    host, port = secure.url.removeprefix("https://").split(":")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    connection = connect(None, None, environ=environ, service_account=tmp_path)
    client = Client(connection, patience=time.patience())
    client.get(PODS)
    (tmp_path / "token").write_text("rotated\n")
    secure.token = "rotated"

    assert b"PodList" in client.get(PODS)
    connection.close()
