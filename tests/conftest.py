"""What all tests share: the summary of the recorded corpus, and property tests that no slow machine fails."""

from hypothesis import HealthCheck, settings

from tests.conformance.summary import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
