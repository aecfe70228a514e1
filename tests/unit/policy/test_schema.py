"""The JSON schema says what a policy may hold, with the arguments of each plugin."""

import json
import re
from collections.abc import Mapping

import pytest

from rebalancer.policy.v1alpha2 import policy_schema
from tests.unit.policy.reading import PLUGINS

SCHEMA = policy_schema(PLUGINS)
DEFINITIONS = SCHEMA["$defs"]


def resolved(schema: Mapping) -> Mapping:
    """A schema behind references and beside null."""
    if "$ref" in schema:
        return resolved(DEFINITIONS[schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        return resolved(next(each for each in schema["anyOf"] if each != {"type": "null"}))
    return schema


def at(*path: str) -> Mapping:
    """What the schema says of a key; `[]` steps into a list."""
    schema = SCHEMA
    for step in path:
        schema = resolved(schema["items"] if step == "[]" else schema["properties"][step])
    return schema


def test_every_reference_leads_somewhere():
    found = set(re.findall(r'"\$ref": "#/\$defs/(.+?)"', json.dumps(SCHEMA)))

    assert found
    assert found <= set(DEFINITIONS)


def test_version_and_kind_are_fixed_and_the_version_is_required():
    assert SCHEMA["required"] == ["apiVersion"]
    assert at("apiVersion") == {"const": "descheduler/v1alpha2"}
    assert at("kind") == {"const": "DeschedulerPolicy"}


@pytest.mark.parametrize("path", ["", "profiles []", "profiles [] plugins balance", "metricsProviders []"])
def test_unknown_keys_are_marked_at_every_level(path):
    assert at(*path.split())["additionalProperties"] is False


def test_limits_are_whole_numbers_that_are_not_negative():
    limit = SCHEMA["properties"]["maxNoOfPodsToEvictTotal"]

    assert {"type": "integer", "minimum": 0} in limit["anyOf"]
    assert limit["description"]


@pytest.mark.parametrize("point", ["balance", "deschedule", "filter", "preEvictionFilter", "preevictionfilter"])
def test_each_point_offers_the_plugins_that_belong_there(point):
    offered = at("profiles", "[]", "plugins", point, "enabled")["items"]["enum"]

    assert offered == [name for name, each in PLUGINS.items() if point.lower() in map(str.lower, each.points)]


def test_arguments_depend_on_the_name():
    config = at("profiles", "[]", "pluginConfig", "[]")
    cases = {case["if"]["properties"]["name"]["const"]: case["then"] for case in config["allOf"]}

    assert list(cases) == config["properties"]["name"]["enum"] == list(PLUGINS)
    args = cases["DefaultEvictor"]["properties"]["args"]
    assert {"type": "null"} in args["anyOf"]
    assert resolved(args)["properties"]["minReplicas"]["minimum"] == 0
    assert DEFINITIONS["Window"]["required"] == ["cron", "for"]


def test_two_plugins_may_share_a_model():
    shared = policy_schema({**PLUGINS, "Another": PLUGINS["RemoveDuplicates"]})

    assert len(shared["$defs"]["PluginConfig"]["allOf"]) == len(PLUGINS) + 1
