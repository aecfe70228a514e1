"""Makes all that a release publishes, into the folder dist: ``release.py VERSION``, or ``make release VERSION=0.2.0``.

| file | what |
|---|---|
| `kube_rebalancer-V-py3-none-any.whl`, `kube_rebalancer-V.tar.gz` | the package, and its source |
| `rebalancer-V.tgz` | the chart |
| `image-V.tar` | the image for amd64 and arm64, as an OCI layout |
| `sbom-V.cdx.json` | what the image holds, in CycloneDX's format |
| `notes-V.md` | the version's part of CHANGELOG.md |
| `SHA256SUMS` | the hashes of all these |

The same commit gives the same bytes: times are those of the commit, and files stand in the order of their names.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
IMAGE = ROOT / "image"
ARCHITECTURES = ("amd64", "arm64")
USER = "1000:1000"
#: Nothing is written into a container, and what it says is seen at once.
ENVIRONMENT = ("PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "PATH=/usr/bin")


class ReleaseError(Exception):
    """Nothing can be released like this; the message says why and what helps."""


def release(version: str, *, image: bool) -> None:
    """Make all files of a release.

    Raises:
        ReleaseError: the tree does not say this version everywhere, or a tool is missing or fails.
    """
    notes = release_notes(version)
    _demand_version(version)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    epoch = int(_output("git", "log", "-1", "--format=%ct"))
    wheel = build_packages(epoch)
    package_chart(version, epoch)
    (DIST / f"notes-{version}.md").write_text(notes)
    if image:
        with tempfile.TemporaryDirectory(prefix="rebalancer-release-") as scratch:
            roots = {each: build_root(each, wheel, Path(scratch)) for each in ARCHITECTURES}
            pack_image(version, epoch, roots, Path(scratch))
            write_sbom(version, epoch, roots["amd64"])
    write_sums()


def _demand_version(version: str) -> None:
    """Stop where a file names another version."""
    chart = yaml.safe_load((ROOT / "chart/Chart.yaml").read_text())
    said = {
        "rebalancer/__init__.py": re.findall(r'__version__ = "(.*)"', (ROOT / "rebalancer/__init__.py").read_text()),
        "chart/Chart.yaml": [chart["version"], chart["appVersion"]],
    }
    for place, found in said.items():
        if set(found) != {version}:
            raise ReleaseError(f"{place} says {', '.join(found)}, not {version}: change it, and commit")


def release_notes(version: str) -> str:
    """Return the version's part of CHANGELOG.md.

    Raises:
        ReleaseError: there is none.
    """
    changelog = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if not found:
        raise ReleaseError(f"CHANGELOG.md has no heading `## {version}`: give what is under Unreleased that heading")
    return found[1].strip() + "\n"


def build_packages(epoch: int) -> Path:
    """Build wheel and sdist into dist; return the wheel."""
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(DIST)], SOURCE_DATE_EPOCH=str(epoch))
    return next(DIST.glob("*.whl"))


def package_chart(version: str, epoch: int) -> None:
    """Pack the chart as `helm package` does, with fixed times."""
    chart = ROOT / "chart"
    files = [path for path in chart.rglob("*") if path.is_file() and not path.name.startswith(".")]
    packed = [path for path in files if path.relative_to(chart).parts[0] != "ci"]
    names = [(f"rebalancer/{path.relative_to(chart)}", path) for path in packed]
    _pack_files(DIST / f"rebalancer-{version}.tgz", epoch, names)


def build_root(architecture: str, wheel: Path, scratch: Path) -> Path:
    """Fill a folder with the image's content for one architecture."""
    target = scratch / architecture
    target.mkdir()
    _run([_python_311(), str(IMAGE / "rootfs.py"), architecture, str(wheel), str(target)])
    return target


def pack_image(version: str, epoch: int, roots: dict[str, Path], scratch: Path) -> None:
    """Make one image of both architectures with buildah, and pack it as an OCI layout.

    Raises:
        ReleaseError: there is no buildah, or it fails.
    """
    if not shutil.which("buildah"):
        raise ReleaseError(
            "the image needs buildah (on Debian: apt-get install buildah); --without-image leaves it out"
        )
    buildah = ["buildah", "--root", f"{scratch}/store", "--runroot", f"{scratch}/run", "--storage-driver", "vfs"]
    name = f"localhost/kube-rebalancer:{version}"
    settings = ["--user", USER, "--entrypoint", '["rebalancer"]', "--cmd", "--help", "--os", "linux"]
    for each in ENVIRONMENT:
        settings += ["--env", each]
    for key, value in labels(version).items():
        settings += ["--label", f"{key}={value}"]
    for architecture, root in roots.items():
        container = _output(*buildah, "from", "--arch", architecture, "scratch")
        layer = scratch / f"{architecture}.tar"
        _pack_root(root, layer, epoch)
        _run([*buildah, "add", "--quiet", container, str(layer), "/"])
        _run([*buildah, "config", "--arch", architecture, *settings, container])
        commit = ["commit", "--quiet", "--rm", "--timestamp", str(epoch), "--format", "oci", "--manifest", name]
        _run([*buildah, *commit, container])
    layout = scratch / "layout"
    _run([*buildah, "manifest", "push", "--quiet", "--all", name, f"oci:{layout}:{version}"])
    blobs = [(str(path.relative_to(layout)), path) for path in layout.rglob("*") if path.is_file()]
    _pack_files(DIST / f"image-{version}.tar", epoch, blobs)


def labels(version: str) -> dict[str, str]:
    """Return what the image says of itself, by the OCI's names."""
    return {
        "org.opencontainers.image.title": "kube-rebalancer",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.description": "Evens out the load of Kubernetes nodes",
    }


def write_sbom(version: str, epoch: int, root: Path) -> None:
    """Write what the image holds as CycloneDX: Debian's packages as pinned, Python's as installed."""
    components = [*_debian_components(), *_python_components(root)]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": _output("date", "--utc", f"--date=@{epoch}", "+%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "container", "name": "kube-rebalancer", "version": version},
        },
        "components": components,
    }
    (DIST / f"sbom-{version}.cdx.json").write_text(json.dumps(document, indent=1) + "\n")


def _debian_components() -> Iterator[dict[str, object]]:
    for line in (IMAGE / "debian.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, version, architecture, sha256 = line.split()
            yield {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:deb/debian/{name}@{version}?arch={architecture}&distro=debian-12",
                "bom-ref": f"deb:{name}:{architecture}",
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }


def _python_components(root: Path) -> Iterator[dict[str, object]]:
    for path in sorted(root.glob("usr/local/lib/python3.*/dist-packages/*.dist-info/METADATA")):
        said = HeaderParser().parsestr(path.read_text())
        name = re.sub(r"[-_.]+", "-", said["Name"]).lower()
        component: dict[str, object] = {
            "type": "library",
            "name": name,
            "version": said["Version"],
            "purl": f"pkg:pypi/{name}@{said['Version']}",
            "bom-ref": f"pypi:{name}",
        }
        if said["License-Expression"]:
            component["licenses"] = [{"expression": said["License-Expression"]}]
        yield component


def write_sums() -> None:
    """Write the hashes of all files in dist, as sha256sum does."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(lines) + "\n")


def _pack_files(path: Path, epoch: int, files: Iterable[tuple[str, Path]]) -> None:
    """Pack files under the names given, with fixed times; a .tgz is compressed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, file in sorted(files):
            content = file.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o644
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0) if path.suffix == ".tgz" else packed.getvalue())


def _pack_root(root: Path, target: Path, epoch: int) -> None:
    """Pack a folder with fixed times, owners and order."""
    _run(
        ["tar", "--create", "--file", str(target), "--sort=name", f"--mtime=@{epoch}", "--owner=0", "--group=0",
         "--numeric-owner", "--format=gnu", "--directory", str(root), "."]
    )  # fmt: skip


def _python_311() -> str:
    """Return the interpreter that compiles for the image."""
    if sys.version_info[:2] == (3, 11):
        return sys.executable
    found = shutil.which("python3.11")
    if not found:
        raise ReleaseError("the image is compiled by Python 3.11, and there is none: on Debian 12 python3 is one")
    return found


def _run(command: list[str], **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-800:]}")


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command[:2])} failed: {done.stderr.strip()[-800:]}")
    return done.stdout.strip()


def main() -> int:
    """Make a release; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("--without-image", action="store_true", help="leave out the image and its SBOM")
    given = parser.parse_args()
    try:
        release(given.version, image=not given.without_image)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    print((DIST / "SHA256SUMS").read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
