"""What all tests share: the last lines of a run, and property tests that no slow machine fails."""

import pytest
from hypothesis import HealthCheck, settings

from tests import absent
from tests.conformance import summary

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Add what a run says at its end, and what it may not lack."""
    config.pluginmanager.register(absent)
    config.pluginmanager.register(summary)
