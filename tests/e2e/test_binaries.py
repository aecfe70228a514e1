"""Where the executables come from: a folder that is named, or a build that leaves whole files or none."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("binaries.py")
# Stands for a Go that is new enough; it writes what it is told to build, then ends as GO_EXIT says.
GO = """#!/bin/sh
if [ "$1" = env ]; then echo go1.99.0; exit; fi
while [ $# -gt 0 ]; do [ "$1" = -o ] && target=$2; shift; done
echo part > "$target"; echo a word from the compiler >&2; exit $GO_EXIT
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM)],
        env=os.environ | {"REBALANCER_E2E_BINARIES": ""} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def with_go(folder: Path, exit_code: int) -> dict[str, str]:
    (folder / "go").write_text(GO)
    (folder / "go").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "GO_EXIT": str(exit_code)}


def test_named_folder_that_lacks_one(tmp_path: Path) -> None:
    """A folder without the executables is refused, with what is missing and what to do."""
    done = run(REBALANCER_E2E_BINARIES=str(tmp_path))

    assert done.returncode == 1
    assert f"REBALANCER_E2E_BINARIES={tmp_path} has no executable controlplane, kwok, metrics-server" in done.stderr
    assert "Traceback" not in done.stderr


def test_named_folder_that_has_all(tmp_path: Path) -> None:
    """A folder with all of them is taken as it is; nothing is built."""
    for name in ("controlplane", "kwok", "metrics-server"):
        (tmp_path / name).touch(mode=0o755)

    done = run(REBALANCER_E2E_BINARIES=str(tmp_path))

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}\n", "")


def test_failed_build_leaves_its_log_and_no_executable(tmp_path: Path) -> None:
    """What a build that failed has written is not taken for an executable; its words are told and kept."""
    done = run(**with_go(tmp_path, exit_code=1))

    assert done.returncode == 1
    assert "a word from the compiler" in done.stderr
    (folder,) = (tmp_path / "cache" / "kube-rebalancer").iterdir()
    assert {file.name for file in folder.iterdir()} == {".lock", "controlplane.log"}
