import pytest

from rebalancer.errors import NoCredentials, Unreachable
from rebalancer.kube.client import Client
from rebalancer.kube.config import Overrides, connect
from tests.fake_api_server import CERTIFICATE

PODS = "/api/v1/pods"


def test_a_certificate_that_is_not_trusted_is_told_at_once(client_of, secure, time):
    """Trying again does not help; the message says where to look, and nothing was sent."""
    with pytest.raises(Unreachable, match=r"certificate of the API server https://.* is not trusted: .*self-signed"):
        client_of(secure).get(PODS)
    assert (secure.requests, time.waits) == ([], [])


def test_a_tls_error_of_settings_is_reported_soon(client_of, server, time):
    """A plain HTTP port behind an https address does not become one by waiting."""
    client = client_of(server, server=server.url.replace("http://", "https://"))

    with pytest.raises(Unreachable, match="no answer from the API server https://"):
        client.get(PODS)
    assert len(time.waits) == 3


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
    """The service account's token and authority; a rotated token is picked up after a 401."""
    client = Client(in_pod(), retry_policy=time.retry_policy())
    client.get(PODS)
    (tmp_path / "token").write_text("rotated\n")
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
