"""What all tests share: what they may not lack, and property tests that neither a slow machine nor chance fails.

A property test draws the same examples in each run, so that a run tells of the change it is about.  Others are drawn
with a seed (`--hypothesis-seed=7`), and where REBALANCER_ATTACK is set, which multiplies their number.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import absent
from tests.attack.seeds import EXAMPLES

TIMES = int(os.environ.get("REBALANCER_ATTACK") or 0)

settings.register_profile(
    "steady",
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    database=None,
)
settings.register_profile(
    "searching", settings.get_profile("steady"), derandomize=False, max_examples=100 * max(TIMES // 4, 1)
)
settings.load_profile("searching" if TIMES else "steady")


def pytest_configure(config: pytest.Config) -> None:
    """Add what a run may not lack; a seed is for drawing with it."""
    if config.getoption("--hypothesis-seed") is not None:
        settings.load_profile("searching")
    config.pluginmanager.register(absent)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """The program sets up logging for its whole process: in a test that is undone."""
    root, ours = logging.getLogger(), logging.getLogger("rebalancer")
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)
