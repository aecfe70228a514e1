"""The policy's JSON schema, for editors that complete and check while one types."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic.json_schema import (
    GenerateJsonSchema,
    JsonSchemaMode,
    JsonSchemaValue,
    JsonSchemaWarningKind,
    models_json_schema,
)

from rebalancer.policy.arguments import Args, Plugin, duration_text
from rebalancer.policy.v1alpha2 import API_VERSION, KIND, POINTS, WirePolicy

#: pydantic keeps its own names for the bounds of a number if a validator runs before them.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """Silently leaves out defaults that JSON cannot hold, such as a parsed selector."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012  pydantic's name and type
        "skipped-choice",
        "non-serializable-default",
    }

    def encode_default(self, dft: Any) -> Any:
        """Return a default as a policy spells it: durations like 20m."""
        return duration_text(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def policy_schema(plugins: Mapping[str, Plugin]) -> dict[str, object]:
    """Return the JSON schema (2020-12) of a v1alpha2 policy, with the arguments of these plugins."""
    models: list[type[Args]] = [WirePolicy, *(plugin.args for plugin in plugins.values())]
    mode: JsonSchemaMode = "validation"
    references, combined = models_json_schema(
        [(model, mode) for model in dict.fromkeys(models)], schema_generator=_Generator
    )
    definitions = {name: _bounded(each) for name, each in combined["$defs"].items()}
    definitions["PluginConfig"] |= _of_each_plugin(
        {name: references[plugin.args, mode] for name, plugin in plugins.items()}
    )
    definitions["ExtensionPoints"]["properties"] |= _points(plugins)
    policy = definitions.pop("WirePolicy")
    policy["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}}
    return {
        "$schema": _DIALECT,
        "title": f"{KIND} {API_VERSION}",
        **{key: value for key, value in policy.items() if key != "title"},
        "required": ["apiVersion"],
        "$defs": definitions,
    }


def _bounded(schema: Any) -> Any:
    """Return a schema in which bounds have their JSON schema names."""
    if isinstance(schema, list):
        return [_bounded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    named = {_BOUNDS.get(key, key) if isinstance(each, int | float) else key: each for key, each in schema.items()}
    return {key: _bounded(each) for key, each in named.items()}


def _of_each_plugin(arguments: Mapping[str, JsonSchemaValue]) -> dict[str, object]:
    """Return the schema that makes `args` depend on `name`."""
    cases = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"args": {"anyOf": [reference, {"type": "null"}]}}},
        }
        for name, reference in arguments.items()
    ]
    properties = {
        "name": {"enum": list(arguments), "description": "Name of the plugin."},
        "args": {"type": ["object", "null"], "description": "Its arguments."},
    }
    return {"properties": properties, "required": ["name"], "allOf": cases}


def _points(plugins: Mapping[str, Plugin]) -> dict[str, object]:
    """Return the extension points, each with the names that belong there."""

    def names(point: str) -> dict[str, object]:
        enum = [name for name, plugin in plugins.items() if point in plugin.points]
        listed = {"type": "array", "items": {"enum": enum}}
        return {"type": "object", "properties": {"enabled": listed}, "additionalProperties": False}

    points = {point: names(point) for point in POINTS}
    return {**points, "preevictionfilter": points["preEvictionFilter"]}
