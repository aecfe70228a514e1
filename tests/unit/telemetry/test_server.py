"""The server of health and metrics under clients that do it wrong, on real sockets, and its TLS."""

import logging
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from rebalancer.errors import UsageError
from rebalancer.telemetry import server as module
from rebalancer.telemetry.checks import ServedPage, health_page
from rebalancer.telemetry.server import Identity, self_signed, serving
from tests.e2e.waiting import wait_for
from tests.functional.probing import ask, ask_once

CERTIFICATE = Path(__file__).parents[2] / "loopback.pem"
PAGES = {"/healthz": lambda verbose: health_page("healthz", {"ping": ""}, verbose=verbose)}


@pytest.fixture
def server():
    with serving("127.0.0.1", 0, PAGES, Identity()) as port:
        yield port


def connect(server):
    return socket.create_connection(("127.0.0.1", server), timeout=60)


def secure(connection):
    return ssl._create_unverified_context().wrap_socket(connection)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_pages_and_what_is_none(server):
    assert (ask(server, "/healthz").status, ask(server, "/healthz").body) == (200, "ok")
    assert ask(server, "/healthz?verbose").body == "[+]ping ok\nhealthz check passed\n"
    assert ask(server, "/healthz", "HEAD").status == 200
    assert ask(server, "/").status == 404
    assert [ask(server, "/healthz", method).status for method in ("DELETE", "POST", "PUT")] == [405] * 3


def test_a_check_that_fails_is_named():
    page = health_page("readyz", {"policy": "", "api": "no answer"}, verbose=False)

    assert page == ServedPage(500, b"[+]policy ok\n[-]api failed: no answer\nreadyz check failed\n")


def test_slow_clients_do_not_keep_others_waiting(monkeypatch):
    """More of them than connections are allowed: the oldest have to go, and the probe is answered."""
    monkeypatch.setattr(module, "CLIENT_SECONDS", 600.0)
    before = descriptors()
    with serving("127.0.0.1", 0, PAGES, Identity()) as patient:
        slow = [connect(patient) for _ in range(module.MOST_CONNECTIONS + 50)]
        half = secure(connect(patient))
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")

        assert ask_once(patient, "/healthz").status == 200
        assert slow[0].recv(1) == b""

        for each in [*slow, half]:
            each.close()
    wait_for(lambda: descriptors() <= before, "no descriptor more than before")


def test_a_slow_client_is_dropped_after_a_while(server, monkeypatch):
    """Neither its handshake nor its headers may take longer than the time that all of it has."""
    monkeypatch.setattr(module, "CLIENT_SECONDS", 0.3)
    with serving("127.0.0.1", 0, PAGES, Identity()) as hurried:
        with connect(hurried) as silent:
            assert silent.recv(1) == b""
        with connect(hurried) as plain:
            assert is_dropped(plain, b"GET /healthz HTTP/1.1\r\nX: ")


def is_dropped(plain, begun):
    """Shake hands, begin a request, and wait for the end; on a busy machine it comes before the handshake is over."""
    try:
        with secure(plain) as client:
            client.sendall(begun)
            return client.recv(1) == b""
    except OSError:
        return True


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n" + b"a" * 1000,
        b"\x00\x01\x02 nonsense\r\n\r\n",
    ],
    ids=["headers", "body", "nonsense"],
)
def test_what_no_probe_sends_is_refused(server, request_):
    with secure(connect(server)) as client:
        try:
            client.sendall(request_)
            answer = client.recv(100)
        except OSError:  # closed while we were still sending
            answer = b""

    assert not answer.startswith(b"HTTP/1.1 2")
    assert ask(server, "/healthz").status == 200


def test_bad_tls_is_dropped_without_a_line_in_the_log(server, caplog):
    """Plain HTTP, an old version, rubbish: whoever reaches the port could fill the log."""
    for sent in (b"GET /healthz HTTP/1.1\r\n\r\n", b"\x16\x03\x00\xff\xff" + b"x" * 100, b"\xff" * 50):
        with connect(server) as client:
            client.sendall(sent)
            try:
                while client.recv(100):
                    pass
            except OSError:
                continue

    assert ask(server, "/healthz").status == 200
    assert caplog.text == ""


def test_the_certificate_that_is_made_is_named_as_the_descheduler_names_its_own(server):
    made = x509.load_der_x509_certificate(served_by(server))

    assert made.subject.rfc4514_string().startswith("CN=apiserver-loopback-client@")


def test_a_certificate_that_changes_is_served(tmp_path):
    file = tmp_path / "tls.pem"
    file.write_bytes(CERTIFICATE.read_bytes())
    identity = Identity(str(file), str(file))
    with serving("127.0.0.1", 0, PAGES, identity) as running:
        first = served_by(running)
        file.write_text("no certificate")
        identity.refresh()
        assert served_by(running) == first
        file.write_bytes(self_signed(datetime.now(UTC)))
        identity.refresh()
        assert served_by(running) != first


def served_by(server):
    with secure(connect(server)) as client:
        return client.getpeercert(binary_form=True)


@pytest.mark.parametrize("files", [("a.crt", ""), ("/absent.crt", "/absent.key")])
def test_certificates_that_cannot_be_used(files):
    with pytest.raises(UsageError):
        Identity(*files)


def test_a_port_that_is_taken(server):
    with pytest.raises(UsageError, match="--secure-port"):
        serving("127.0.0.1", server, PAGES, None).__enter__()


AES_128 = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


@pytest.mark.parametrize(
    ("suites", "served", "unknown"),
    [
        (["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"], "ECDHE-ECDSA-AES256-GCM-SHA384", ""),
        (["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"], "ECDHE-RSA-AES128-SHA", ""),
        (["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"], "ECDHE-ECDSA-AES128-SHA256", ""),
        (["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"], "ECDHE-RSA-CHACHA20-POLY1305", ""),
        (["TLS_RSA_WITH_AES_128_GCM_SHA256"], "AES128-GCM-SHA256", ""),
        (["TLS_RSA_WITH_AES_256_CBC_SHA"], "AES256-SHA", ""),
        (["ECDHE-RSA-AES128-GCM-SHA256"], "ECDHE-RSA-AES128-GCM-SHA256", ""),
        ([AES_128, "TLS_ECDHE_RSA_WITH_AES_129_GCM_SHA256"], "ECDHE-RSA-AES128-GCM-SHA256", "AES_129"),
        # Not the suite of TLS 1.2 with a similar name, which lacks forward secrecy.
        (["TLS_AES_128_GCM_SHA256", AES_128], "ECDHE-RSA-AES128-GCM-SHA256", ""),
    ],
)
def test_a_suite_is_served_by_iana_or_openssl_name(suites, served, unknown, caplog):
    """One that is not offered is named; suites of TLS 1.3 choose nothing of 1.2."""
    with caplog.at_level(logging.WARNING):
        found = Identity(cipher_suites=suites).context.get_ciphers()

    assert [each["name"] for each in found if each["protocol"] != "TLSv1.3"] == [served]
    assert unknown in caplog.text
    assert AES_128 not in caplog.text
    assert bool(caplog.text) == bool(unknown)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cipher_suites": ["FOO"]}, r"--tls-cipher-suites .*for TLS 1\.2.*--tls-min-version"),
        ({"cipher_suites": ["TLS_AES_128_GCM_SHA256"]}, r"--tls-cipher-suites .*for TLS 1\.2.*--tls-min-version"),
        ({"min_version": "VersionTLS11"}, "--tls-min-version .*VersionTLS12, VersionTLS13"),
        ({"min_version": "1.2"}, "--tls-min-version .*VersionTLS12, VersionTLS13"),
    ],
)
def test_what_leaves_nothing_to_serve_is_bad_usage(given, message):
    with pytest.raises(UsageError, match=message):
        Identity(**given)
