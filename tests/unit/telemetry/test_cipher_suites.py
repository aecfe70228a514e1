"""The cipher suites of TLS 1.2, by the names of the descheduler's flag."""

import logging

import pytest

from rebalancer.errors import UsageError
from rebalancer.telemetry.server import Identity


def served(*suites: str) -> list[str]:
    context = Identity(cipher_suites=suites).context
    return [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_a_suite_is_served_by_iana_or_openssl_name(suite: str, name: str) -> None:
    assert served(suite) == [name]


def test_what_is_not_offered_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert served("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_129_GCM_SHA256") == [
            "ECDHE-RSA-AES128-GCM-SHA256"
        ]

    (warning,) = caplog.messages
    assert "TLS_ECDHE_RSA_WITH_AES_129_GCM_SHA256" in warning
    assert "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" not in warning


def test_suites_of_tls_1_3_choose_nothing_of_1_2(caplog: pytest.LogCaptureFixture) -> None:
    """TLS_AES_128_GCM_SHA256 is not the suite of TLS 1.2 with a similar name, which lacks forward secrecy."""
    assert served("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256") == ["ECDHE-RSA-AES128-GCM-SHA256"]
    assert not caplog.messages


@pytest.mark.parametrize("suites", [("FOO",), ("TLS_AES_128_GCM_SHA256",)])
def test_none_that_is_offered_is_bad_usage(suites: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"--tls-cipher-suites .*for TLS 1\.2.*--tls-min-version"):
        served(*suites)


@pytest.mark.parametrize("version", ["VersionTLS10", "VersionTLS11", "1.2"])
def test_versions_before_tls_1_2_are_bad_usage(version: str) -> None:
    with pytest.raises(UsageError, match=r"--tls-min-version .*VersionTLS12, VersionTLS13"):
        Identity(min_version=version)
