"""Builds what the image holds: an interpreter, its libraries, the program, and nothing else.

``rootfs.py ARCHITECTURE WHEEL TARGET`` fills the folder TARGET for `amd64` or `arm64`, without a container engine and
without root:

1. Debian's packages of `debian.txt` are fetched with apt-get, from the mirrors that this machine is set up for, held
   against their hashes, and unpacked. Their scripts are not run.
2. The Python packages of `runtime.txt` are fetched for that architecture, held against their hashes, and unpacked.
3. The wheel of the program is unpacked, and all that is Python is compiled, so that a read-only root starts fast.
4. What needs a shell or is only read by people goes. Copyright files stay.

``rootfs.py --pin`` writes `debian.txt` anew, with the versions that the mirrors have now.

It needs Python 3.11, pip, apt-get and dpkg-deb: a Debian 12 machine, or the first stage of the Dockerfile.
"""

import argparse
import compileall
import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DEBIAN = HERE / "debian.txt"
RUNTIME = HERE / "runtime.txt"
PYTHON = "3.11"
SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
#: Debian's architectures, and the tags of the wheels that run on them with Debian 12's C library (2.36).
WHEELS = {"amd64": "x86_64", "arm64": "aarch64"}
TAGS = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_26", "manylinux_2_17", "manylinux2014", "manylinux_2_5")
#: The interpreter and what its standard library links to, as far as the program uses it; certificates; time zones.
PACKAGES = (
    "python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "libgcc-s1", "libstdc++6",
    "libexpat1", "zlib1g", "libbz2-1.0", "liblzma5", "libssl3", "libffi8", "libuuid1", "ca-certificates", "tzdata",
)  # fmt: skip
#: For people, for building, for other programs, or in need of a shell.
NOT_NEEDED = (
    "usr/share/man", "usr/share/lintian", "usr/share/locale", "usr/share/bug", "usr/share/applications",
    "usr/share/pixmaps", "usr/share/binfmts", "usr/share/gcc", "usr/share/gdb", "usr/share/zoneinfo/right",
    "usr/share/zoneinfo/posix", "etc/ld.so.conf.d", "etc/ca-certificates",
    f"usr/lib/python{PYTHON}/pydoc_data", f"usr/lib/python{PYTHON}/lib2to3", f"usr/lib/python{PYTHON}/turtle.py",
)  # fmt: skip
USERS = "root:x:0:0:root:/:/nologin\nrebalancer:x:1000:1000:rebalancer:/:/nologin\n"
GROUPS = "root:x:0:\nrebalancer:x:1000:\n"
#: No shell can read this: the kernel starts the interpreter itself.
LAUNCHER = f"#!/usr/bin/python{PYTHON} -P\nimport sys\nfrom rebalancer.__main__ import main\nsys.exit(main())\n"


class RootError(Exception):
    """The root cannot be built; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One Debian package for one architecture.

    Attributes:
        name: the package.
        version: its version.
        architecture: `amd64`, `arm64`; a package for all of them has a line for each.
        sha256: the hash of the file.
    """

    name: str
    version: str
    architecture: str
    sha256: str


def build(architecture: str, wheel: Path, target: Path) -> None:
    """Fill an empty folder with the image's content.

    Raises:
        RootError: a package cannot be had, or is not the one that is pinned.
    """
    _demand_python()
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "tmp", "etc"):
        (target / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (target / name).symlink_to(f"usr/{name}")
    with tempfile.TemporaryDirectory() as scratch:
        for package in _fetch(architecture, [pin for pin in pins() if pin.architecture == architecture], Path(scratch)):
            _unpack(package, target)
    _install(architecture, ["--require-hashes", "--requirement", str(RUNTIME)], target)
    _install(architecture, ["--no-deps", "--no-index", str(wheel)], target)
    _finish(target)


def pins() -> Iterator[Pin]:
    """Read `debian.txt`."""
    for line in DEBIAN.read_text().splitlines():
        if line and not line.startswith("#"):
            yield Pin(*line.split())


def pin() -> None:
    """Write `debian.txt` anew.

    Raises:
        RootError: a package cannot be had.
    """
    lines = ["# package version architecture sha256; written by `make pins`"]
    for architecture in WHEELS:
        with tempfile.TemporaryDirectory() as scratch:
            for package in _download(architecture, list(PACKAGES), Path(scratch)):
                name, version, _ = package.name.split("_")
                lines.append(f"{name} {version.replace('%3a', ':')} {architecture} {_sha256(package)}")
    DEBIAN.write_text("\n".join(lines) + "\n")


def _fetch(architecture: str, wanted: list[Pin], folder: Path) -> list[Path]:
    """Return the files of the pinned packages, each held against its hash."""
    hashes = {each.name: each.sha256 for each in wanted}
    found = _download(architecture, [f"{each.name}={each.version}" for each in wanted], folder)
    for package in found:
        if _sha256(package) != hashes[package.name.split("_")[0]]:
            raise RootError(f"{package.name} is not the file that {DEBIAN.name} names: its hash is another one")
    return found


def _download(architecture: str, names: list[str], folder: Path) -> list[Path]:
    """Fetch packages with apt-get, whose lists for this architecture are kept in the folder and not on the machine."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Dir::State": folder / "state",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache",
    }
    apt = ["apt-get", "-qq", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
    _run([*apt, "update"], folder, "Debian's lists of packages cannot be had")
    _run(
        [*apt, "download", *names],
        folder,
        f"a package of {DEBIAN.name} cannot be had; a mirror drops a version when Debian mends it, and `make pins`"
        " then takes the mended one",
    )
    return sorted(folder.glob("*.deb"))


def _unpack(package: Path, target: Path) -> None:
    """Unpack a Debian package; /bin and /lib are links into /usr, as Debian 12 has them."""
    archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE, check=True)
    subprocess.run(
        ["tar", "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", target],
        input=archive.stdout,
        check=True,
    )


def _install(architecture: str, what: list[str], target: Path) -> None:
    """Unpack wheels for the architecture; nothing of them runs."""
    platforms = [f"--platform={tag}_{WHEELS[architecture]}" for tag in TAGS]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
        *("--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp", "--abi=cp311", "--abi=abi3"),
        *("--abi=none", *platforms, "--target", str(target / SITE), "--upgrade", *what),
    ]
    _run(command, target, "the Python packages cannot be had")


def _finish(target: Path) -> None:
    """Write what scripts of Debian's packages would have made, take away what is not needed, and compile the rest."""
    site = target / SITE
    shutil.rmtree(site / "bin", ignore_errors=True)
    for each in (target / "usr/sbin").iterdir():
        each.unlink()
    launcher = target / "usr/bin/rebalancer"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    (target / "usr/bin/descheduler").symlink_to("rebalancer")
    (target / "etc/passwd").write_text(USERS)
    (target / "etc/group").write_text(GROUPS)
    certificates = sorted((target / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    bundle = target / "etc/ssl/certs/ca-certificates.crt"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    bundle.write_text("".join(each.read_text() for each in certificates))
    for name in NOT_NEEDED:
        found = target / name
        shutil.rmtree(found) if found.is_dir() else found.unlink(missing_ok=True)
    for each in (target / "usr/share/doc").rglob("*"):
        if each.is_file() and each.name != "copyright":
            each.unlink()
    for name in (f"usr/lib/python{PYTHON}", SITE):
        compileall.compile_dir(
            target / name,
            quiet=2,
            stripdir=str(target),
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            workers=0,
        )
    (target / "tmp").chmod(0o1777)


def _demand_python() -> None:
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    if found != PYTHON:
        raise RootError(f"this is Python {found}; the image has {PYTHON}, and only that compiles for it")


def _run(command: list[str], folder: Path, trouble: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode:
        raise RootError(f"{trouble}: {(done.stderr or done.stdout).strip()[-500:]}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Build a root, or pin its packages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pin", action="store_true", help="write debian.txt anew")
    parser.add_argument("architecture", nargs="?", choices=WHEELS)
    parser.add_argument("wheel", nargs="?", type=Path)
    parser.add_argument("target", nargs="?", type=Path)
    given = parser.parse_args()
    if not given.pin and not given.target:
        parser.error("ARCHITECTURE, WHEEL and TARGET are wanted, or --pin")
    try:
        pin() if given.pin else build(given.architecture, given.wheel.resolve(), given.target.resolve())
    except RootError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
