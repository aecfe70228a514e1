"""What all tests share: the summary of the recorded corpus."""

from tests.conformance.summary import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]
