"""Which changes have been noticed, and by what; kept between runs."""

import json
from pathlib import Path

from tests.mutants.changes import Change
from tests.mutants.reach import digest


class Noticed:
    """What noticed a change, as long as the changed module is what it was."""

    def __init__(self, kept: Path, root: Path) -> None:
        self._kept = kept
        self._root = root
        self._by: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}

    def by(self, change: Change) -> str:
        """Return the test that noticed a change, empty if none has."""
        return self._by.get(self._key(change), "")

    def keep(self, change: Change, failure: str) -> None:
        """Keep what noticed a change."""
        self._by[self._key(change)] = failure
        self._kept.parent.mkdir(exist_ok=True)
        self._kept.write_text(json.dumps(self._by, indent=1))

    def _key(self, change: Change) -> str:
        return f"{digest(self._root / change.path)} {change.start} {change}"
