"""What values.schema.json says of `deschedulerPolicy`: the program's own schema of policies, as helm can use it.

`python -m tests.chart.policy_schema` writes it anew.  It differs from `rebalancer schema` in four ways: null is allowed
everywhere, as the program allows it; text may hold a template expression in place of the words and patterns that it
must match; plugins may have names that the program does not know, since an image can bring plugins of its own; and the
older form v1alpha1 is known too.
"""

import json
from collections.abc import Mapping
from typing import Any

from rebalancer.policy.arguments import Args
from rebalancer.policy.v1alpha1 import API_VERSION as OLD_API_VERSION
from rebalancer.policy.v1alpha1 import OldPolicy
from rebalancer.run.policies import schema_of
from tests.chart.helm import CHART

Schema = dict[str, Any]

PATH = CHART / "values.schema.json"
_TEMPLATE = {"type": "string", "pattern": r"\{\{"}
_NULL = {"type": "null"}
#: Of no use to helm.
_LEFT_OUT = {"$schema", "$defs", "title", "default", "required"}


def with_policy(values: Mapping[str, Any]) -> Schema:
    """Return the schema of the chart's values with all that is said of `deschedulerPolicy` made anew."""
    current, old = schema_of("policy"), OldPolicy.model_json_schema()
    definitions = {name: _carried(each) for name, each in {**old["$defs"], **current["$defs"]}.items()}
    definitions |= {"PolicyV1alpha1": _carried(old), "PolicyV1alpha2": _carried(current)}
    for version in ("PolicyV1alpha1", "PolicyV1alpha2"):
        definitions[version]["properties"] |= {"apiVersion": {}, "kind": {}}
    plugin_config, points = definitions["PluginConfig"]["properties"], definitions["ExtensionPoints"]["properties"]
    plugin_config["name"] = {"type": "string"}
    points |= {name: {"$ref": "#/definitions/PluginSet"} for name in points}
    for case in definitions["PluginConfig"]["allOf"]:
        arguments = case["then"]["properties"]["args"]["$ref"].rsplit("/", 1)[-1]
        definitions[arguments]["properties"] |= {key: {} for key in sorted(Args.ignored_keys)}
    is_old = {"properties": {"deschedulerPolicyAPIVersion": {"const": OLD_API_VERSION}}}
    return {
        **values,
        "if": {**is_old, "required": ["deschedulerPolicyAPIVersion"]},
        "then": _policy("PolicyV1alpha1"),
        "else": _policy("PolicyV1alpha2"),
        "definitions": dict(sorted(definitions.items())),
    }


def _policy(name: str) -> Schema:
    return {"properties": {"deschedulerPolicy": {"$ref": f"#/definitions/{name}"}}}


def _carried(schema: Schema) -> Schema:
    """Return a schema in the dialect of helm (draft 7), with null and template expressions allowed."""
    kept = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
    for key in ("properties", "additionalProperties", "items"):
        if isinstance(kept.get(key), dict):
            is_map = key == "properties"
            kept[key] = {name: _carried(each) for name, each in kept[key].items()} if is_map else _carried(kept[key])
    if "$ref" in kept:
        return {**kept, "$ref": kept["$ref"].replace("#/$defs/", "#/definitions/")}
    if "anyOf" in kept:
        return _any_of(kept)
    if "allOf" in kept:
        kept["allOf"] = [{**case, "then": {"properties": _arguments(case["then"])}} for case in kept["allOf"]]
    return _open(kept)


def _arguments(then: Schema) -> Schema:
    return {name: _carried(each) for name, each in then["properties"].items()}


def _any_of(schema: Schema) -> Schema:
    """Return it with one choice less: null is a choice everywhere."""
    choices = [_carried(each) for each in schema.pop("anyOf") if each != _NULL]
    return {**schema, **choices[0]} if len(choices) == 1 else {**schema, "anyOf": choices}


def _open(schema: Schema) -> Schema:
    """Return a schema that null fits, and a template expression where text does."""
    if "enum" in schema or "const" in schema:
        words = schema.pop("enum", None) or [schema.pop("const")]
        described = {key: value for key, value in schema.items() if key == "description"}
        return {**described, "anyOf": [{"enum": [*words, None]}, _TEMPLATE]}
    if "pattern" in schema:
        schema["pattern"] += "|" + str(_TEMPLATE["pattern"])
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return schema


def written(schema: Schema) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    PATH.write_text(written(with_policy(json.loads(PATH.read_text()))))


if __name__ == "__main__":
    main()
