"""Examples and presets are policies that load."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from rebalancer import api
from rebalancer.cli.main import main
from rebalancer.marking.rules import MarkingRules
from rebalancer.report.plan import Plan
from rebalancer.run.policies import presets, read_policy

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", presets())
def test_every_preset_loads_strictly_and_says_whom_it_suits(name: str) -> None:
    """A preset has no warnings and begins with a comment."""
    assert not read_policy(name, strict=True).warnings
    assert (ROOT / "policies/presets" / f"{name}.yaml").read_text().startswith("# ")


def policies_in_manifests() -> list[str]:
    found = []
    for path in sorted((ROOT / "examples").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document.get("kind") == "DeschedulerPolicy":
                found.append(path.read_text())
            if document.get("kind") == "ConfigMap":
                found += document.get("data", {}).values()
    return found


@pytest.mark.parametrize("text", policies_in_manifests())
def test_every_policy_in_the_examples_loads_strictly(text: str, tmp_path: Path) -> None:
    """What people copy works as it stands."""
    path = tmp_path / "policy.yaml"
    path.write_text(text)

    assert not read_policy(str(path), strict=True).warnings


def test_the_published_schema_is_the_programs_own() -> None:
    """`make schema` was run after the last change of an argument."""
    published = (ROOT / "policies/schema/v1alpha2.json").read_text()

    assert published == CliRunner().invoke(main, ["schema"]).stdout
    assert json.loads((ROOT / "policies/schema/plan-v1.json").read_text()) == Plan.model_json_schema(by_alias=True)
    rules = MarkingRules.model_json_schema(by_alias=True)
    assert json.loads((ROOT / "policies/schema/marking-rules-v1.json").read_text()) == rules


@pytest.mark.parametrize("document", ["plan", "report", "log", "marking-rules"])
def test_every_schema_is_printed(document: str) -> None:
    printed = CliRunner().invoke(main, ["schema", document]).stdout

    assert json.loads(printed) == json.loads((ROOT / f"policies/schema/{document}-v1.json").read_text())


def test_lines_of_a_json_log_are_as_their_schema_says() -> None:
    """The report's lines of the demonstration, nodes included."""
    asked = ["run", "--policy", "demo", "--snapshot", str(ROOT / "examples/cluster.json"), "-v", "1"]
    printed = CliRunner().invoke(main, [*asked, "--log-format", "json"]).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    schema = json.loads((ROOT / "policies/schema/log-v1.json").read_text())

    for line in lines:
        jsonschema.validate(line, schema)
    assert {each["kind"] for each in lines} == {each["title"] for each in schema["oneOf"]} - {"Log line", "Failure"}


def test_a_strategy_sees_forty_names_at_most() -> None:
    """The public face stays small enough to read."""
    assert len(api.__all__) <= 40
