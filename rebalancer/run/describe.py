"""What strategies and presets are, from their own docstrings, arguments and comments."""

import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import yaml

from rebalancer.engine.plugins import strategies
from rebalancer.errors import UsageError
from rebalancer.policy.arguments import DURATION_PATTERN
from rebalancer.policy.evictor import DEFAULT_EVICTOR
from rebalancer.policy.findings import did_you_mean
from rebalancer.run.policies import known_plugins, preset_directory, presets, schema

Schema = Mapping[str, Any]

_INDENT = "  "
_WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON schema of a `policy`, `plan`, `report`, `marking-rules`, or of a line of the JSON `log`."""
    if document == "policy":
        return schema()  # with the strategies that are installed
    found: dict[str, Any] = json.loads((preset_directory().parent / "schema" / f"{document}-v1.json").read_text())
    return found


def _argument_lines(models: Schema, model: Schema, indent: str = _INDENT) -> Iterator[str]:
    """Yield a line for each argument of a model, and for each key inside it; the models are those of a JSON schema."""
    required = model.get("required", ())
    for key, field in model.get("properties", {}).items():
        meaning = f": {field['description']}" if "description" in field else ""
        yield f"{indent}{key} ({_kind(models, field)}{_default(field, required=key in required)}){meaning}"
        if inner := _model(models, field):
            yield from _argument_lines(models, inner, indent + _INDENT)


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
        if each.get("type") == "array" and each.get("items"):
            return _model(models, each["items"])
        if isinstance(each.get("additionalProperties"), Mapping):
            return _model(models, each["additionalProperties"])
        if "$ref" in each:
            found: Schema = models[each["$ref"].rpartition("/")[2]]
            return found
    return None


#: Arguments of DefaultEvictor for a first try.
_EVICTOR_EXAMPLE = {"nodeFit": True, "minReplicas": 2, "minPodAge": "10m"}


def list_strategies() -> Iterator[str]:
    """Yield a line for each strategy, and one for the evictor."""
    known = strategies()
    width = max(map(len, known))
    for name, strategy in known.items():
        yield f"{name:<{width}}  {strategy.point:<10}  {(strategy.__doc__ or '').strip().splitlines()[0]}"
    yield f"{DEFAULT_EVICTOR.name:<{width}}  {'filter':<10}  Say which pods a profile may evict; always on."


def describe_strategy(name: str) -> Iterator[str]:
    """Yield the manual of one strategy or of the evictor: meaning, arguments, and a policy that runs.

    Raises:
        UsageError: there is no such strategy.
    """
    plugins = known_plugins()
    if name not in plugins:
        raise UsageError(f"there is no strategy {name!r}{did_you_mean(name, plugins)}")
    strategy = strategies().get(name)
    if strategy:
        module = inspect.getmodule(strategy)
        yield ((module.__doc__ if module else "") or strategy.__doc__ or "").strip()
    else:
        purpose = (DEFAULT_EVICTOR.args.__doc__ or "").strip()
        yield f"{name}: {purpose[:1].lower()}{purpose[1:]}\n\nEvery profile has it, configured or not."
    yield ""
    yield f"Extension point: {' and '.join(sorted(plugins[name].points))}"
    yield "Arguments:"
    models = schema()["$defs"]
    yield from _argument_lines(models, models[plugins[name].args.__name__])
    yield ""
    yield "Example:"
    yield from (f"  {line}" for line in example(name).splitlines())


def example(name: str) -> str:
    """Return a policy that can be run as it is: with this strategy, or with the evictor and a strategy."""
    strategy = strategies().get(name)
    chosen = strategy or strategies()["RemoveDuplicates"]
    configured: list[dict[str, Any]] = [{"name": chosen.name, "args": _plain(chosen.example)}]
    if strategy is None:
        configured.insert(0, {"name": name, "args": _EVICTOR_EXAMPLE})
    profile = {
        "name": "default",
        "pluginConfig": configured,
        "plugins": {chosen.point: {"enabled": [chosen.name]}},
    }
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": 10,
        "profiles": [profile],
    }
    return yaml.safe_dump(policy, sort_keys=False)


def list_presets() -> Iterator[str]:
    """Yield a line for each preset: its name, and whom it suits."""
    names = presets()
    width = max(map(len, names))
    for name in names:
        yield f"{name:<{width}}  {_suits(name)}"


def describe_preset(name: str) -> str:
    """Return the text of a preset, comments and all.

    Raises:
        UsageError: there is no such preset.
    """
    if name not in presets():
        raise UsageError(f"there is no preset {name!r}{did_you_mean(name, presets())}")
    return (preset_directory() / f"{name}.yaml").read_text(encoding="utf-8").rstrip()


def _suits(name: str) -> str:
    """Return the first sentence of the comment that a preset begins with."""
    lines = takewhile(lambda line: line.startswith("#"), describe_preset(name).splitlines())
    text = " ".join(line.removeprefix("#").strip() for line in lines)
    return text.split(". ")[0].removesuffix(".") + "."


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
