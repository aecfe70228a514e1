"""The Dockerfile, read, and carried out in a folder where there is no container engine.

The steps are the Dockerfile's own: RUN goes to a shell, COPY copies, and every absolute path that the Dockerfile makes
is moved into the folder.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
#: What the Dockerfile makes, and what it only finds.
_MADE = re.compile(r"(?<![\w./])(?=/(?:source|build|dist|opt/rebalancer|bin/descheduler)\b)")
_TIMEOUT = 900


@dataclass(frozen=True)
class Instruction:
    """One of the Dockerfile's, its lines joined."""

    name: str
    text: str


def instructions() -> Iterator[Instruction]:
    """Read the Dockerfile."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, text = line.partition(" ")
            yield Instruction(name, text.strip())


def stages() -> list[list[Instruction]]:
    """The instructions of each stage, less FROM and what precedes the first."""
    found: list[list[Instruction]] = []
    for each in instructions():
        if each.name == "FROM":
            found.append([])
        elif found:
            found[-1].append(each)
    return found


@dataclass
class Folder:
    """A folder that stands for the root of both stages.

    Attributes:
        root: the folder.
        python: the interpreter that stands for the base image's.
        environment: what ENV has set.
        entrypoint: what ENTRYPOINT names.
        user: whom USER names, as a number.
    """

    root: Path
    python: str
    environment: dict[str, str] = field(default_factory=dict)
    entrypoint: list[str] = field(default_factory=list)
    user: int = 0
    _here: Path = field(default_factory=Path)

    def carry_out(self) -> None:
        """Do all steps of all stages; what one stage copies from another is there already."""
        for stage in stages():
            for each in stage:
                self._do(each)

    def inside(self, path: str) -> str:
        """Where a path of the image, or a text with such paths, is in the folder."""
        return _MADE.sub(str(self.root), path)

    def _do(self, instruction: Instruction) -> None:
        match instruction.name:
            case "WORKDIR":
                self._here = Path(self.inside(instruction.text))
                self._here.mkdir(parents=True)
            case "COPY":
                self._copy(instruction.text.split())
            case "RUN":
                self._run(instruction.text)
            case "ENV":
                self.environment.update(each.split("=", 1) for each in self.inside(instruction.text).split())
            case "USER":
                self.user = int(instruction.text.split(":")[0])
            case "ENTRYPOINT":
                self.entrypoint = json.loads(instruction.text)
            case "CMD":
                pass
            case _:
                raise AssertionError(f"the Dockerfile has {instruction.name}, which this test cannot carry out")

    def _copy(self, words: list[str]) -> None:
        *sources, target = words
        if sources[0].startswith("--from="):
            assert Path(self.inside(target)).is_dir()
            return
        for source in sources:
            into = self._here / target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, into)

    def _run(self, text: str) -> None:
        (self.root / "bin").mkdir(exist_ok=True)
        script = self.inside(text).replace("python3 -m venv", f"{self.python} -m venv").replace("--no-cache-dir ", "")
        done = subprocess.run(
            ["sh", "-euc", script],
            cwd=self._here,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        said = done.stdout + done.stderr
        if "NewConnectionError" in said or "NameResolutionError" in said:
            pytest.skip("packages cannot be had: there is no network")
        assert done.returncode == 0, said
