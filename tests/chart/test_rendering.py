"""The chart renders, whatever its values: checked by helm itself."""

import re
import shlex
import tarfile
from pathlib import Path

import pytest
import yaml

from rebalancer import __version__
from tests.chart.helm import (
    CHART,
    CI,
    KUBERNETES,
    ROOT,
    container,
    helm,
    kinds,
    needed,
    objects,
    template,
    workloads,
)

pytestmark = needed
#: The two commands by which the main README installs.
INSTALLATION = re.compile(r"^\$ (make image .*)\n\$ (helm install .*)$", re.MULTILINE)
EACH = pytest.mark.parametrize("file", CI, ids=lambda file: file.name)


@EACH
def test_helm_lint_finds_nothing(file: Path) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "--values", file, "--kube-version", "1.36.0").stdout


@EACH
@pytest.mark.parametrize("kubernetes", ["1.25.0", "1.36.0"])
def test_every_file_renders(file: Path, kubernetes: str) -> None:
    """For old clusters as for new ones: one workload of the kind that was asked for, with its policy."""
    found = template(file.read_text(), kubernetes=kubernetes)

    assert kinds(workloads(found)) == [(yaml.safe_load(file.read_text()) or {}).get("kind", "CronJob")]
    assert {"ConfigMap", "ClusterRole", "ClusterRoleBinding"} <= {*kinds(found)}


def test_all_names_are_of_the_release() -> None:
    """Two releases in one cluster do not get in each other's way."""
    for file in CI:
        first, second = (
            {
                (each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"])
                for each in template(file.read_text(), "--set", f"fullnameOverride={name},serviceAccount.name={name}")
            }
            for name in ("first", "second")
        )

        assert not first & second, file.name


def test_the_package_holds_what_is_needed(tmp_path: Path) -> None:
    """Presets, dashboard and alerts too, and no values of tests."""
    helm("package", CHART, "--destination", tmp_path)

    (package,) = tmp_path.glob("rebalancer-*.tgz")
    with tarfile.open(package) as archive:
        names = {name.removeprefix("rebalancer/") for name in archive.getnames()}
    assert {"values.schema.json", "README.md", "presets/safe.yaml", "rules/alerts.yaml"} <= names
    assert "dashboards/rebalancer.json" in names
    assert not [name for name in names if name.startswith("ci/")]


def test_what_is_built_is_what_is_installed() -> None:
    """The image that the first command pushes is the one that the second command's chart asks for."""
    found = INSTALLATION.search((ROOT / "README.md").read_text())
    assert found is not None
    image = dict(each.split("=") for each in shlex.split(found[1])[2:])["IMAGE"]
    _, _, release, chart, *options = shlex.split(found[2])

    rendered = helm("template", release, ROOT / chart, *options, "--kube-version", KUBERNETES).stdout

    assert container(list(objects(rendered)))["image"] == f"{image}:{__version__}"
