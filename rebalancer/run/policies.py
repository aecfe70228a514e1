"""Policies and strategies: found by name, made ready to run, and described as they describe themselves."""

import inspect
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

import rebalancer
from rebalancer.engine.strategy import plugin, strategies
from rebalancer.errors import UsageError
from rebalancer.policy.arguments import DURATION_PATTERN, Plugin
from rebalancer.policy.evictor import DEFAULT_EVICTOR
from rebalancer.policy.findings import did_you_mean
from rebalancer.policy.load import converted_policy, load_policy
from rebalancer.policy.v1alpha2 import policy_schema
from rebalancer.policy.values import LoadedPolicy
from rebalancer.policy.windows import time_with_offset
from rebalancer.untrusted.documents import LARGEST_SETTINGS, Unreadable, read_input


def settings_text(name: str, what: str, missing: str) -> str:
    """Return the text of a file, `-` for standard input; messages call it `what`, and `missing` is that for no file."""
    try:
        return read_input(name, LARGEST_SETTINGS).decode()
    except FileNotFoundError:
        raise UsageError(missing) from None
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        raise UsageError(f"{what} {name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def given_time(text: str) -> datetime:
    """Return the time that `--now` gives; raise UsageError if it is not a time with its offset."""
    moment = time_with_offset(text)
    if moment is None:
        raise UsageError(f"--now {text!r} is not an RFC 3339 time; write it like 2026-01-15T12:00:00Z")
    return moment


def known_plugins() -> Mapping[str, Plugin]:
    """Return the plugins that a policy may name, by name."""
    return {DEFAULT_EVICTOR.name: DEFAULT_EVICTOR} | {name: plugin(strategy) for name, strategy in strategies().items()}


def preset_directory() -> Path:
    """Return the folder of the presets: inside the package in a wheel, beside it in a checkout."""
    package = Path(rebalancer.__file__).parent
    inside = package / "policies"
    return (inside if inside.is_dir() else package.parent / "policies") / "presets"


def presets() -> tuple[str, ...]:
    """Return the names of the presets."""
    return tuple(sorted(path.stem for path in preset_directory().glob("*.yaml")))


def read_policy(
    name: str, text: str | None = None, *, strict: bool, live: bool = False, runs: bool = True
) -> LoadedPolicy:
    """Load a policy by path, `-`, or preset, or from its text.

    With `strict` warnings count as errors, with `live` unknown keys do.  One that only has sources of usage, and does
    not run, need not enable any strategy.
    """
    text = policy_text(name) if text is None else text
    return load_policy(text, known_plugins(), source=name, strict=strict, live=live, runs=runs)


def convert(name: str) -> str:
    """Return a policy of either form as YAML of the present one."""
    return converted_policy(policy_text(name), known_plugins(), source=name)


def policy_text(name: str) -> str:
    """Return the text of a policy by its file's path, `-` for standard input, or a preset's name."""
    if name in presets() and not Path(name).is_file():
        return (preset_directory() / f"{name}.yaml").read_text()
    meant = get_close_matches(name, presets(), n=1)
    hint = f"; did you mean the preset {meant[0]!r}?" if meant else ""
    missing = f"there is no policy file {name}, and the presets are {', '.join(presets())}{hint}"
    return settings_text(name, "policy", missing)


Schema = Mapping[str, Any]
_INDENT = "  "
_WORDS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON schema of a `policy`, `plan`, `report`, `marking-rules`, or of a line of the JSON `log`."""
    if document == "policy":
        return policy_schema(known_plugins())  # with the strategies that are installed
    found: dict[str, Any] = json.loads((preset_directory().parent / "schema" / f"{document}-v1.json").read_text())
    return found


def _argument_lines(models: Schema, model: Schema, indent: str = _INDENT) -> Iterator[str]:
    required = model.get("required", ())
    for key, field in model.get("properties", {}).items():
        meaning = f": {field['description']}" if "description" in field else ""
        default = field.get("default")
        is_shown = isinstance(default, bool | int | float | str) and default != ""
        known = ", required" if key in required else f", default {json.dumps(default)}" if is_shown else ""
        yield f"{indent}{key} ({_kind(field)}{known}){meaning}"
        if inner := _model(models, field):
            yield from _argument_lines(models, inner, indent + _INDENT)


def _choices(field: Schema) -> list[Schema]:
    return [each for each in field.get("anyOf", [field]) if each.get("type") != "null"]


def _kind(field: Schema) -> str:
    return " or ".join(map(_one_kind, _choices(field)))


def _one_kind(field: Schema) -> str:
    if "enum" in field or "const" in field:
        return " | ".join(str(each) for each in field.get("enum", [field.get("const")]) if each != "")
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}" if field.get("items") else "list"
    if field.get("type") == "object" or "$ref" in field:
        return "map"
    if field.get("pattern") == DURATION_PATTERN:
        return "duration"
    return _WORDS.get(str(field.get("type")), "any value")


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
    """Yield the manual of one strategy or of the evictor: meaning, arguments, and a policy that runs."""
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
    models = schema_of("policy")["$defs"]
    yield from _argument_lines(models, models[plugins[name].args.__name__])
    yield ""
    yield "Example:"
    yield from (f"  {line}" for line in example(name).splitlines())


def example(name: str) -> str:
    """Return a policy that can be run as it is: with this strategy, or with the evictor and a strategy."""
    chosen = strategies().get(name) or strategies()["RemoveDuplicates"]
    configured = [{"name": chosen.name, "args": json.loads(json.dumps(chosen.example, default=dict))}]
    if chosen.name != name:
        configured.insert(0, {"name": name, "args": _EVICTOR_EXAMPLE})
    plugins = {chosen.point: {"enabled": [chosen.name]}}
    policy = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "maxNoOfPodsToEvictTotal": 10,
        "profiles": [{"name": "default", "pluginConfig": configured, "plugins": plugins}],
    }
    return yaml.safe_dump(policy, sort_keys=False)


def list_presets() -> Iterator[str]:
    """Yield a line for each preset: its name, and whom it suits, as the first sentence of its comment has it."""
    width = max(map(len, presets()))
    for name in presets():
        comment = takewhile(lambda line: line.startswith("#"), describe_preset(name).splitlines())
        suits = " ".join(line.removeprefix("#").strip() for line in comment)
        yield f"{name:<{width}}  {suits.split('. ')[0].removesuffix('.')}."


def describe_preset(name: str) -> str:
    """Return the text of a preset, comments and all."""
    if name not in presets():
        raise UsageError(f"there is no preset {name!r}{did_you_mean(name, presets())}")
    return (preset_directory() / f"{name}.yaml").read_text().rstrip()
