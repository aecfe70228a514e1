"""The arguments of a plugin in words: name, type, default and meaning of each key, nested keys indented."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rebalancer.policy.arguments import DURATION_PATTERN

Schema = Mapping[str, Any]

_INDENT = "  "
_WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def argument_lines(schema: Schema, name: str) -> Iterator[str]:
    """Yield a line for each argument of the model of this name, and for each key inside it.

    Args:
        schema: the JSON schema of a policy, with the models under `$defs`.
        name: a model under `$defs`, like `PodLifeTimeArgs`.
    """
    yield from _lines(schema["$defs"], schema["$defs"][name], _INDENT)


def _lines(models: Schema, model: Schema, indent: str) -> Iterator[str]:
    required = model.get("required", ())
    for key, field in model.get("properties", {}).items():
        yield f"{indent}{key} ({_kind(models, field)}{_default(field, required=key in required)}){_meaning(field)}"
        inner = _model(models, field)
        if inner:
            yield from _lines(models, inner, indent + _INDENT)


def _meaning(field: Schema) -> str:
    return f": {field['description']}" if "description" in field else ""


def _choices(field: Schema) -> list[Schema]:
    return [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]


def _kind(models: Schema, field: Schema) -> str:
    return " or ".join(_one_kind(models, each) for each in _choices(field))


def _one_kind(models: Schema, field: Schema) -> str:
    if "enum" in field or "const" in field:
        return " | ".join(str(each) for each in field.get("enum", [field.get("const")]) if each != "")
    if field.get("type") == "array":
        return f"list of {_kind(models, field['items'])}" if field.get("items") else "list"
    if field.get("type") == "object" or "$ref" in field:
        return "map"
    if field.get("pattern") == DURATION_PATTERN:
        return "duration"
    return _WORDS.get(str(field.get("type")), "any value")


def _default(field: Schema, *, required: bool) -> str:
    if required:
        return ", required"
    default = field.get("default")
    if isinstance(default, bool | int | float | str) and default != "":
        return f", default {json.dumps(default)}"
    return ""


def _model(models: Schema, field: Schema) -> Schema | None:
    """Return the model of this field's value, or of its items; None for plain values."""
    for each in _choices(field):
        target = each
        if each.get("type") == "array" and each.get("items"):
            return _model(models, each["items"])
        if isinstance(each.get("additionalProperties"), Mapping):
            return _model(models, each["additionalProperties"])
        if "$ref" in target:
            found: Schema = models[target["$ref"].rpartition("/")[2]]
            return found
    return None
