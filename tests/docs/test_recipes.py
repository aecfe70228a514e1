"""docs/recipes.md: each recipe is taken where it says, does what it says, and jq reads what the program prints."""

import json
import re
import shutil
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from rebalancer.cli.main import main
from rebalancer.eviction.causes import Code
from tests.commands import ROOT, run

RECIPES = (ROOT / "docs/recipes.md").read_text()
FRAGMENTS = re.findall(r"^```yaml\n# (args of \w+|top of the policy)\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)
FILTERS = re.findall(r"^```jq\n(.*?)^```", RECIPES, re.MULTILINE | re.DOTALL)

Policy = dict[str, Any]


def policy(place, text):
    """A policy of the demonstration, with one recipe in its place."""
    made: Policy = yaml.safe_load((ROOT / "policies/presets/demo.yaml").read_text())
    part = yaml.safe_load(text)
    if place == "top of the policy":
        return {**made, **part}
    name = place.removeprefix("args of ")
    if "nvidia.com/gpu" in text:  # by what pods request
        profile = {"name": "gpu", "pluginConfig": [{"name": name, "args": part}]}
        return {**made, "profiles": [{**profile, "plugins": {"balance": {"enabled": [name]}}}]}
    configs = made["profiles"][0]["pluginConfig"]
    configs[0] = {"name": name, "args": {**configs[0]["args"], **part}}
    return made


def ran(folder, document, *options):
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(document))
    cluster = json.loads((ROOT / "examples/cluster.json").read_text())
    for each in cluster["items"]:
        if each["kind"] == "Namespace":  # as every API server labels it
            each["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = each["metadata"]["name"]
    (folder / "cluster.json").write_text(json.dumps(cluster))
    command = ["run", "--policy", str(path), "--snapshot", str(folder / "cluster.json"), "--strict"]
    done = CliRunner().invoke(main, [*command, "--output", "json", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(("place", "text"), FRAGMENTS)
def test_each_recipe_is_taken_where_it_says(place, text, tmp_path):
    """Strictly, in a policy that decides."""
    assert json.loads(ran(tmp_path, policy(place, text)))["kind"] == "Report"


def first(wish):
    """The first recipe under a heading: where it is taken, and its text."""
    (section,) = (each for each in RECIPES.split("\n## ") if each.startswith(wish))
    return re.findall(r"^```yaml\n# (.*?)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[0]


def test_a_namespace_is_left_alone(tmp_path):
    """In words that fit the example cluster."""
    place, text = first("Leave a namespace alone")
    assert "payments" in text

    evictions = json.loads(ran(tmp_path, policy(place, text.replace("payments", "shop"))))["evictions"]

    assert {each["namespace"] for each in evictions} == {"batch", "tools"}


def test_the_worst_node_takes_the_whole_limit(tmp_path):
    """Of the strategy that comes by load."""
    made = policy(*first("Only the worst node"))
    made["profiles"][0]["plugins"] = {"balance": {"enabled": ["LowNodeUtilization"]}}
    report = json.loads(ran(tmp_path, made))

    (run,) = report["strategies"]
    targets = run["targetThresholds"]
    over = {each["name"]: max(each["before"][name] - targets[name] for name in targets) for each in run["nodes"]}
    assert report["evictions"][0]["node"] == max(over, key=over.__getitem__)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return ran(tmp_path_factory.mktemp("demo"), yaml.safe_load((ROOT / "policies/presets/demo.yaml").read_text()))


@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq: apt-get install jq")
@pytest.mark.parametrize("filter_", FILTERS)
def test_each_filter_reads_the_report(filter_, report):
    """And finds something in it; the last one ends in an error, as it says."""
    is_error = "error(" in filter_

    done = run("jq", "-r", filter_, input=report, code=None if is_error else 0)

    assert "null" not in done.stdout
    assert "look at it first" in done.stderr if is_error else done.stdout.strip()


def test_causes_in_troubleshooting_are_those_of_reports():
    text = (ROOT / "docs/troubleshooting.md").read_text()
    named = {cause for row in re.findall(r"refused by ([^|;]*)", text) for cause in re.findall(r"`(\w+)`", row)}

    assert len(named) >= 8
    assert named <= {code.value for code in Code}
