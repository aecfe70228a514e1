"""Names of runs."""

import secrets
from datetime import UTC, datetime


def new_run() -> str:
    """Return a name that only this run has and that is valid as the value of a taint."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
