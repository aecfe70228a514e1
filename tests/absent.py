"""What the tests need that a machine may lack: they are skipped there, or fail where it is required.

`REBALANCER_REQUIRE=prometheus,conformance,zsh,fish` makes the lack of any an error before any test runs.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from tests import real_prometheus
from tests.conformance import corpus

VARIABLE = "REBALANCER_REQUIRE"


def missing_shell(shell: str) -> str:
    """Return why the completion of a shell cannot be tested; empty where it is there."""
    return "" if shutil.which(shell) else f"there is no {shell}: apt-get install {shell}"


#: By name: why it is missing, in words; empty where it is there.
_MISSING: Mapping[str, Callable[[], str]] = {
    "conformance": corpus.missing,
    "prometheus": real_prometheus.missing,
    **{shell: partial(missing_shell, shell) for shell in ("zsh", "fish")},
}


def pytest_configure() -> None:
    """End the run at its start where something required is missing."""
    required = [each.strip() for each in os.environ.get(VARIABLE, "").split(",") if each.strip()]
    for name in required:
        if name not in _MISSING:
            raise pytest.UsageError(f"{VARIABLE}: {name!r} is not known; it may name {', '.join(sorted(_MISSING))}")
        if reason := _MISSING[name]():
            raise pytest.UsageError(f"{VARIABLE} asks for {name}, but {reason}")
