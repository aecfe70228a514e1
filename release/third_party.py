"""Writes THIRD_PARTY.md: what the image and the wheel bring along, and under which licences.

It ends with 1 where a licence forbids to pass the program on, or is not known.
"""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "THIRD_PARTY.md"
#: Licences that let others use, change and pass on what contains the work, by words in how packages name them.
FREE = re.compile(
    r"apache|mit\b|bsd|psf|python software foundation|mpl|mozilla|isc|unlicense|lgpl|0bsd|cc0|zlib", re.IGNORECASE
)
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def licence(name: str) -> str:
    """Return the licence that an installed package names; empty where it names none."""
    said = metadata.metadata(name)
    classifiers = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier") or () if "License ::" in each]
    short = said.get("License", "").strip().splitlines()[:1]
    return said.get("License-Expression") or " and ".join(classifiers) or "".join(short)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield name, version and licence of each Python package of the image."""
    for name, version in PINNED.findall((ROOT / "image/runtime.txt").read_text()):
        yield name, version, licence(name)


def page(found: list[tuple[str, str, str]]) -> str:
    """Return the page."""
    debian = sorted(
        {line.split()[0] for line in (ROOT / "image/debian.txt").read_text().splitlines() if line[0] != "#"}
    )
    table = "\n".join(f"| {name} | {version} | {said} |" for name, version, said in found)
    return (
        "# What comes along\n\nWritten by `make third-party`. The program itself is under the Apache License 2.0.\n\n"
        f"| Python package | version | licence |\n|---|---|---|\n{table}\n\n"
        f"The image also holds packages of Debian 12: {', '.join(debian)}. "
        "Their licences are in `/usr/share/doc/*/copyright` of the image.\n"
    )


def main() -> int:
    """Write the page; return the exit code."""
    found = list(rows())
    PAGE.write_text(page(found))
    unfree = [f"{name}: {said or 'no licence named'}" for name, _, said in found if not FREE.search(said)]
    for each in unfree:
        print(f"its licence is not known to be free: {each}", file=sys.stderr)
    return 1 if unfree else 0


if __name__ == "__main__":
    sys.exit(main())
