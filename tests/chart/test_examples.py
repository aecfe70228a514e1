"""The manifests in examples/kubernetes are what the chart renders."""

import re

from tests.chart.examples import FOLDER, examples
from tests.chart.helm import needed, objects


@needed
def test_examples_are_rendered_from_the_chart() -> None:
    """`make chart` writes them."""
    assert {path.name: path.read_text() for path in FOLDER.glob("*.yaml")} == examples()


def test_the_readme_names_every_file_in_the_order_of_application() -> None:
    """Permissions and policy first, then one of the workloads."""
    readme = (FOLDER / "README.md").read_text()

    applied = re.findall(r"--filename (\w+\.yaml)", readme)

    assert applied[:2] == ["rbac.yaml", "policy.yaml"]
    assert {*applied} == {path.name for path in FOLDER.glob("*.yaml")}


def test_examples_do_not_speak_of_helm() -> None:
    for path in FOLDER.glob("*.yaml"):
        assert "helm" not in path.read_text().lower().replace("what the helm chart installs", ""), path.name
        assert all(
            each["metadata"]["name"].startswith(("rebalancer", "kube-rebalancer")) for each in objects(path.read_text())
        )
