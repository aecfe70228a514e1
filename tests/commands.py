"""Commands that tests run to their end."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Only what is broken takes so long.
TIMEOUT = 900.0


def run(
    *command: object, code: int | None = 0, env: Mapping[str, str] | None = None, **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """Run a command, in the checkout unless told otherwise; it has to end with this code, or None with any.

    `env` are variables beside those of the tests.
    """
    settings = {"cwd": ROOT, "env": os.environ | dict(env or {}), "timeout": TIMEOUT, **settings}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **settings)
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done
