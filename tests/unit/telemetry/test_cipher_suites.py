"""The cipher suites of TLS 1.2, by the names of the descheduler's flag."""

import logging

import pytest

from rebalancer.errors import UsageError
from rebalancer.telemetry.server import Identity

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
