"""Policies that are shown load, schemas are fresh, and what is printed keeps to them."""

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from rebalancer import api
from rebalancer.cli.main import main
from rebalancer.marking.rules import MarkingRules
from rebalancer.policy.load import load_policy
from rebalancer.report.plan import Plan
from rebalancer.run.policies import known_plugins
from tests.docs.test_documents import DOCUMENTS, blocks

ROOT = Path(__file__).parents[2]


def shipped():
    """Each policy among presets and examples, also inside of ConfigMaps, with where it is from."""
    for path in (*sorted((ROOT / "policies/presets").iterdir()), *sorted((ROOT / "examples").rglob("*.yaml"))):
        for document in yaml.safe_load_all(path.read_text()):
            if document.get("kind") == "DeschedulerPolicy":
                yield path.name, path.read_text()
            if document.get("kind") == "ConfigMap":
                yield from ((f"{path.name}:{key}", text) for key, text in document.get("data", {}).items())


def policies():
    """Every policy that people copy: those that are shipped, and those of documents."""
    yield from (pytest.param(text, id=name) for name, text in shipped())
    for path in DOCUMENTS:
        for number, body in enumerate(blocks(path, "yaml")):
            if re.search(r"^kind: DeschedulerPolicy", body, re.MULTILINE):
                yield pytest.param(body, id=f"{path.name} {number}")


@pytest.mark.parametrize("text", list(policies()))
def test_every_policy_that_is_shown_loads_strictly(text):
    """What people copy works as it stands, without warnings; a part of a policy has no profiles."""
    loaded = load_policy(text, known_plugins(), source="shown", strict=True)

    assert not loaded.warnings or "profiles: []" in text


def test_the_published_schema_is_the_programs_own():
    """`make schema` was run after the last change of an argument."""
    published = (ROOT / "policies/schema/v1alpha2.json").read_text()

    assert published == CliRunner().invoke(main, ["schema"]).stdout
    assert json.loads((ROOT / "policies/schema/plan-v1.json").read_text()) == Plan.model_json_schema(by_alias=True)
    rules = MarkingRules.model_json_schema(by_alias=True)
    assert json.loads((ROOT / "policies/schema/marking-rules-v1.json").read_text()) == rules


@pytest.mark.parametrize("document", ["plan", "report", "log", "marking-rules"])
def test_every_schema_is_printed(document):
    printed = CliRunner().invoke(main, ["schema", document]).stdout

    assert json.loads(printed) == json.loads((ROOT / f"policies/schema/{document}-v1.json").read_text())


def test_lines_of_a_json_log_are_as_their_schema_says():
    """The report's lines of the demonstration, nodes included."""
    asked = ["run", "--policy", "demo", "--snapshot", str(ROOT / "examples/cluster.json"), "-v", "1"]
    printed = CliRunner().invoke(main, [*asked, "--log-format", "json"]).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    schema = json.loads((ROOT / "policies/schema/log-v1.json").read_text())

    assert all(map(jsonschema.Draft202012Validator(schema).is_valid, lines))
    assert {each["kind"] for each in lines} == {each["title"] for each in schema["oneOf"]} - {"Log line", "Failure"}


def test_a_strategy_sees_forty_names_at_most():
    """The public face stays small enough to read."""
    assert len(api.__all__) <= 40
