"""A wheel claims one top-level name, and works in an environment that has never seen the checkout."""

import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import click
import pytest

from strategies import BUILTIN
from tests.commands import ROOT, run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target, cwd=ROOT)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A clean environment with the wheel alone; its dependencies are those of this environment."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False, symlinks=True)
    site = next((home / "lib").glob("python*")) / "site-packages"
    (site / "dependencies.pth").write_text(str(_third_party(home)) + "\n")
    with zipfile.ZipFile(wheel) as archive:  # a pure wheel is installed by that, but for its commands
        archive.extractall(site)
    return home


def _third_party(home):
    """The packages of this environment, less the checkout itself, so that only the wheel can be found."""
    packages = Path(click.__file__).parents[1]
    linked = home / "third-party"
    linked.mkdir()
    for entry in packages.iterdir():
        if not entry.name.endswith(".pth") and "rebalancer" not in entry.name:
            (linked / entry.name).symlink_to(entry)
    return linked


def rebalancer(installed, *arguments):
    command = (installed / "bin/python", "-m", "rebalancer", *arguments)
    return run(*command, cwd=installed, env={"PYTHONPYCACHEPREFIX": ""}).stdout


def test_the_wheel_claims_one_top_level_name(wheel):
    """Installing it puts nothing called `strategies`, `policies` or `tests` beside other packages."""
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}

    assert {name for name in top if not name.endswith(".dist-info")} == {"rebalancer"}


def test_the_source_brings_all_that_its_tests_read(tmp_path):
    """Else `make test` fails in what PyPI has."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    patterns = ("*.md", ".ci/*", ".github/*/*", "tests/**/*.py", "docs/**/*.md")
    read = {str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern)}

    with tarfile.open(next(tmp_path.iterdir())) as archive:
        assert read - {name.partition("/")[2] for name in archive.getnames()} == set()


def test_it_lists_its_strategies_outside_the_checkout(installed):
    """Those that it carries, whatever is called `strategies` beside it.

    Strategies that import one another absolutely would work in a checkout and fail here.
    """
    foreign = next((installed / "lib").glob("python*")) / "site-packages" / "strategies"
    foreign.mkdir()
    (foreign / "__init__.py").write_text("BUILTIN = ()\n")

    listed = rebalancer(installed, "strategies")

    assert [line.split()[0] for line in listed.splitlines()] == [
        *(strategy.name for strategy in BUILTIN),
        "DefaultEvictor",
    ]


def test_it_finds_its_presets_and_runs_the_main_job(installed):
    """A preset is known by its name, and a dry run works on a file."""
    report = rebalancer(installed, "run", "--policy", "demo", "--snapshot", ROOT / "examples/cluster.json")

    assert "would be evicted" in report
