"""What `make release` makes is installed and run: packages, chart and image.

They need a network, Debian's tools and buildah.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.chart.helm import found
from tests.commands import ROOT, run

VERSION = re.findall(r'__version__ = "(.*)"', (ROOT / "rebalancer/__init__.py").read_text())[0]
INTERPRETERS = [f"3.{minor}" for minor in range(11, 15)]
LARGEST_LAYER = 120 * 2**20

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
has_buildah = pytest.mark.skipif(not shutil.which("buildah"), reason="there is no buildah")


def said(*command, cwd, code=0, **environment):
    done = run(*command, cwd=cwd, code=code, env=environment)
    return done.stdout + done.stderr


def tree(folder):
    """A clone in which the changelog has a heading for the version."""
    said("git", "clone", "--quiet", ROOT, folder, cwd=ROOT)
    changelog = folder / "CHANGELOG.md"
    changelog.write_text(re.sub(r"^## Unreleased", f"## {VERSION}", changelog.read_text(), count=1, flags=re.MULTILINE))
    return folder


def release(folder, *options, version=VERSION, code=0):
    return said(sys.executable, folder / "release/release.py", version, *options, cwd=folder, code=code)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """All that a release makes; the image only where there is buildah."""
    folder = tree(tmp_path_factory.mktemp("release") / "tree")
    release(folder, *([] if shutil.which("buildah") else ["--without-image"]))
    return folder / "dist"


@pytest.fixture(scope="module")
def roots(dist, tmp_path_factory):
    """The unpacked image of each architecture, where every user may enter."""
    layout = tmp_path_factory.mktemp("layout")
    with tarfile.open(dist / f"image-{VERSION}.tar") as archive:
        archive.extractall(layout, filter="data")
    unpacked = {}
    for architecture, manifest in manifests(layout):
        unpacked[architecture] = Path("/tmp") / f"rebalancer-root-{os.getpid()}-{architecture}"
        unpacked[architecture].mkdir()
        for layer in manifest["layers"]:
            said("tar", "-xzf", blob(layout, layer), "-C", unpacked[architecture], cwd=layout)
    yield unpacked
    for each in unpacked.values():
        shutil.rmtree(each)


def blob(layout, named):
    return layout / "blobs" / named["digest"].replace(":", "/")


def manifests(layout):
    """Each image of the layout with its architecture; what is read has the digest that names it."""
    (named,) = json.loads((layout / "index.json").read_text())["manifests"]
    for each in json.loads(blob(layout, named).read_text())["manifests"]:
        path = blob(layout, each)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        yield each["platform"]["architecture"], json.loads(path.read_text())


def test_the_sums_are_those_of_all_files(dist):
    """`sha256sum --check` is content, and nothing lies beside the files it names."""
    said("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)

    named = {line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()}
    assert named == {path.name for path in dist.iterdir()} - {"SHA256SUMS"}


def test_the_same_commit_gives_the_same_bytes(dist, tmp_path):
    """Packages and chart, built a second time elsewhere."""
    again = tree(tmp_path / "again")
    release(again, "--without-image")

    for path in (again / "dist").iterdir():
        if path.name != "SHA256SUMS":
            assert path.read_bytes() == (dist / path.name).read_bytes(), path.name


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_the_wheel_runs_in_a_bare_environment(dist, tmp_path, interpreter):
    """With each Python it says it supports, as far as they are here; dependencies come from the index."""
    python = shutil.which(f"python{interpreter}")
    if not python or subprocess.call([python, "-c", "import ensurepip"], stderr=subprocess.DEVNULL):
        pytest.skip(f"there is no Python {interpreter} that makes environments")
    said(python, "-m", "venv", "bare", cwd=tmp_path)
    wheel = next(dist.glob("*.whl"))
    said("bare/bin/pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, cwd=tmp_path)

    told = said("bare/bin/rebalancer", "run", "--policy", "demo", "--snapshot", ROOT / "examples/cluster.json",
               cwd=tmp_path)  # fmt: skip

    assert "would be evicted" in told


def test_the_source_builds_the_same_wheel(dist, tmp_path):
    """What is in the sdist is enough to build from."""
    with tarfile.open(next(dist.glob("kube_rebalancer-*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(tmp_path.iterdir())
    wheel = next(dist.glob("*.whl"))

    said(sys.executable, "-m", "hatchling", "build", "-t", "wheel", cwd=source,
        SOURCE_DATE_EPOCH=said("git", "log", "-1", "--format=%ct", cwd=ROOT).strip())  # fmt: skip

    assert (source / "dist" / wheel.name).read_bytes() == wheel.read_bytes()


@pytest.mark.skipif(found("helm") is None, reason="there is no helm")
def test_the_packed_chart_installs(dist):
    """helm lints and renders it, and its values are those of the tree."""
    chart = dist / f"rebalancer-{VERSION}.tgz"
    helm = str(found("helm"))

    said(helm, "lint", "--strict", chart, cwd=dist)
    rendered = said(helm, "template", "rebalancer", chart, "--kube-version", "1.36.0", cwd=dist)

    assert "kind: CronJob" in rendered
    assert said(helm, "show", "values", chart, cwd=dist).strip() == (ROOT / "chart/values.yaml").read_text().strip()
    assert "artifacthub.io/license" in said(helm, "show", "chart", chart, cwd=dist)


@has_buildah
def test_the_image_runs_as_its_user_on_a_tree_it_cannot_write(roots):
    """A dry run over the example cluster from standard input, under both names; no file is written."""
    if os.getuid():
        pytest.skip("only root may change the root directory")
    root = roots["amd64"]
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    shutil.copy(ROOT / "examples/cluster.json", root / "tmp")
    try:
        told = said("chroot", "--userspec=1000:1000", root, "/bin/descheduler", "run", "--policy", "safe",
                   "--snapshot", "/tmp/cluster.json", "--output", "json", cwd=root)  # fmt: skip
    finally:
        (root / "tmp/cluster.json").unlink()

    assert '"kind": "Report"' in told
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*") if path != root / "tmp"} == {
        path: when for path, when in before.items() if path != root / "tmp"
    }


@has_buildah
def test_the_image_is_small_has_no_shell_and_no_installer(roots):
    """Nothing to run but the program, nothing that gives more rights, nothing that everybody may write but /tmp."""
    for root in roots.values():
        files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
        programs = {path.name for path in (root / "usr/bin").iterdir()}

        assert programs == {"python3.11", "rebalancer", "descheduler"}
        assert not [path for path in files if path.name in {"sh", "bash", "dash", "busybox"} or "pip" in path.parts]
        assert not [path for path in files if path.stat().st_mode & 0o6002]


@has_buildah
def test_the_layers_are_small_and_the_user_is_not_root(dist, tmp_path):
    """For both architectures."""
    with tarfile.open(dist / f"image-{VERSION}.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    seen = dict(manifests(tmp_path))

    assert set(seen) == {"amd64", "arm64"}
    for architecture, manifest in seen.items():
        config = json.loads(blob(tmp_path, manifest["config"]).read_text())
        assert config["architecture"] == architecture
        assert (config["config"]["User"], config["config"]["Entrypoint"]) == ("1000:1000", ["rebalancer"])
        assert sum(each["size"] for each in manifest["layers"]) <= LARGEST_LAYER


@has_buildah
def test_each_architecture_has_its_own_machine_code(roots):
    """ELF files say which machine they are for: 62 is x86-64, 183 is AArch64."""
    for architecture, machine in (("amd64", 62), ("arm64", 183)):
        heads = [(path, path.read_bytes()[:20]) for path in roots[architecture].rglob("*")
                 if path.is_file() and not path.is_symlink()]  # fmt: skip
        elf = [(path, head) for path, head in heads if head[:4] == b"\x7fELF"]
        assert len(elf) > 50
        assert {int.from_bytes(head[18:20], "little") for _, head in elf} == {machine}


@has_buildah
def test_the_bill_of_materials_names_all_that_is_pinned(dist):
    """Each Debian package and each Python package, with its version, and the program itself."""
    bill = json.loads((dist / f"sbom-{VERSION}.cdx.json").read_text())
    listed = {(each["purl"].split(":")[1].split("/")[0], each["name"], each["version"]) for each in bill["components"]}
    debian = [line.split() for line in (ROOT / "image/debian.txt").read_text().splitlines() if line[0] != "#"]
    python = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "image/runtime.txt").read_text(), re.MULTILINE)

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert len({each["bom-ref"] for each in bill["components"]}) == len(bill["components"])
    assert listed == {
        *(("deb", name, version) for name, version, *_ in debian),
        *(("pypi", re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in python),
        ("pypi", "kube-rebalancer", VERSION),
    }


@pytest.mark.parametrize(
    ("version", "words"),
    [("9.9.9", "CHANGELOG.md has no heading `## 9.9.9`"), (VERSION, "chart/Chart.yaml says 0.0.7")],
)
def test_what_does_not_fit_is_said_in_one_line(tmp_path, version, words):
    """And nothing is made."""
    folder = tree(tmp_path / "tree")
    chart = folder / "chart/Chart.yaml"
    chart.write_text(re.sub(r"^(version): .*", r"\1: 0.0.7", chart.read_text(), flags=re.MULTILINE))

    told = release(folder, version=version, code=1)

    assert words in told
    assert told.count("\n") == 1
    assert not (folder / "dist").exists()
