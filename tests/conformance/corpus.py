"""The recorded corpus of the descheduler's own tests, read in place; its INDEX.md explains the fields."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Names another folder than `../shared/conformance` beside the checkout.
VARIABLE = "REBALANCER_CONFORMANCE"

Case = Mapping[str, Any]


def folder() -> Path:
    return Path(os.environ.get(VARIABLE) or Path(__file__).parents[3] / "shared" / "conformance")


def read() -> list[Case]:
    """Return all cases, file by file; none where the corpus is absent."""
    return [case for path in sorted(folder().glob("*.json")) for case in json.loads(path.read_text())]


def missing() -> str:
    """Return why there are no cases; empty if there are."""
    found = next(folder().glob("*.json"), None)
    return "" if found else f"there are no recorded cases in {folder()}; {VARIABLE} may name their folder"
