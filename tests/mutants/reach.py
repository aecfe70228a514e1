"""Which files of tests run which lines of the program: `python -m tests.mutants.reach FILE ...` prints it as JSON.

Lines that another process runs are not seen, so it tells as well which files start Python as one.  What runs while a
module is imported belongs to no file.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

ROOT = Path(__file__).parents[2]


class Reach:
    """A plugin of pytest: lines count for the file whose test runs."""

    def __init__(self) -> None:
        self._measured = Coverage(data_file=None, config_file=False, source=[str(ROOT / "rebalancer")])
        self._file = ""
        self._processes: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._file = nodeid.partition("::")[0]
        self._measured.switch_context(self._file)

    def measure(self, files: Iterable[str]) -> Mapping[str, Any]:
        """Run these files; return for each module which of them run each of its lines, and which start processes."""
        sys.addaudithook(self._note)
        with self._measured.collect():
            pytest.main(["-q", "-p", "no:xdist", "--hypothesis-seed=0", *files], plugins=[self])
        data = self._measured.get_data()
        lines = {str(Path(path).relative_to(ROOT)): data.contexts_by_lineno(path) for path in data.measured_files()}
        return {"lines": lines, "processes": sorted(self._processes)}

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and "python" in str(arguments[:2]):
            self._processes.add(self._file)


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        found = Reach().measure(sys.argv[1:])
    sys.stdout.write(json.dumps(found))
