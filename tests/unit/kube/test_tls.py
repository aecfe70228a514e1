from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from kubernetes.config import incluster_config

from rebalancer.errors import NoCredentials, Unreachable
from rebalancer.eviction.verdict import GRANTED
from rebalancer.kube import credentials
from rebalancer.kube.client import Client
from rebalancer.kube.config import connect
from rebalancer.kube.evictions import Evictions
from rebalancer.kube.overrides import Overrides
from tests.fake_api_server import CERTIFICATE, FakeApiServer

PODS = "/api/v1/pods"


def test_a_certificate_that_is_not_trusted_is_told_at_once(client_of, secure, time):
    """Trying again does not help; the message says where to look, and nothing was sent."""
    with pytest.raises(Unreachable, match=r"certificate of the API server https://.* is not trusted: .*self-signed"):
        client_of().get(PODS)
    assert (secure.requests, time.waits) == ([], [])


def test_the_clusters_own_authority_is_trusted(client_of):
    """certificate-authority is what a kubeconfig has it for."""
    assert b"PodList" in client_of(**{"certificate-authority": str(CERTIFICATE)}).get(PODS)


def test_an_answer_lost_within_tls_leaves_the_same_doubt(client_of, secure, time, pod):
    """A server that dies breaks off TLS without a farewell: what it was asked for may have been done."""
    secure.add(pod("a"))
    secure.reset("POST", "*/eviction", processed=True)
    secure.fail("POST", "*/eviction", status=503, times=4)
    evictions = Evictions(client_of(**{"certificate-authority": str(CERTIFICATE)}), retry_policy=time.retry_policy())

    assert evictions.evict("default", "a", "uid-of-a", profile="p", strategy="s", reason="r") == GRANTED


def test_a_tls_error_of_settings_is_reported_soon(secure, tmp_path, time):
    """A plain HTTP port behind an https address does not become one by waiting."""
    with FakeApiServer() as plain:
        path = plain.kubeconfig(tmp_path)
        path.write_text(path.read_text().replace("http://", "https://"))
        connection = connect(str(path), None, environ={})
        with pytest.raises(Unreachable, match="no answer from the API server https://"):
            Client(connection, retry_policy=time.retry_policy()).get(PODS)
        connection.close()
    assert len(time.waits) == 3


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
    client = Client(connection, retry_policy=time.retry_policy())
    client.get(PODS)
    (tmp_path / "token").write_text("rotated\n")
    secure.token = "rotated"

    assert b"PodList" in client.get(PODS)
    assert len(secure.requests) == 3
    connection.close()


def test_a_rotated_token_is_read_after_a_minute(tmp_path, monkeypatch):
    """Before the server refuses the old one; after that minute as well."""
    (tmp_path / "ca.crt").write_bytes(CERTIFICATE.read_bytes())
    (tmp_path / "token").write_text("1")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "localhost", "KUBERNETES_SERVICE_PORT": "6443"}
    access = connect(None, None, environ=environ, service_account=tmp_path).access()
    sent = []
    for step, token in enumerate("223345"):
        (tmp_path / "token").write_text(token)
        later = SimpleNamespace(now=lambda at=step * timedelta(minutes=0.7): datetime.now() + at)  # noqa: DTZ005  as the package has it
        monkeypatch.setattr(incluster_config, "datetime", SimpleNamespace(datetime=later, timedelta=timedelta))
        monkeypatch.setattr(credentials, "datetime", later)
        sent.append(access.headers()["Authorization"][-1])

    assert "".join(sent) == "113344"


def test_the_command_line_goes_above_a_service_account(secure, tmp_path, time):
    """Whom to act as, and that the certificate is not looked at."""
    (tmp_path / "ca.crt").write_text("not the authority of this server")
    (tmp_path / "token").write_text("the-token\n")
    host, port = secure.url.removeprefix("https://").split(":")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    overrides = Overrides(user="deputy", groups=("few",), insecure=True)
    connection = connect(None, None, overrides=overrides, environ=environ, service_account=tmp_path)

    assert b"PodList" in Client(connection, retry_policy=time.retry_policy()).get(PODS)
    assert secure.requests[0].headers["impersonate-group"] == "few"
    connection.close()


def test_fresh_credentials_with_another_authority_are_not_used(client_of, secure, tmp_path):
    """The file is the same, what stands in it is not: whoever can write it could stand in for the server."""
    authority = tmp_path / "ca.crt"
    authority.write_bytes(CERTIFICATE.read_bytes())
    client = client_of(**{"certificate-authority": str(authority)})
    client.get(PODS)
    secure.token = "another"
    authority.write_bytes(CERTIFICATE.read_bytes() + b"\n")

    with pytest.raises(NoCredentials, match="another certificate-authority: start a new run"):
        client.get(PODS)
    assert len(secure.requests) == 2
