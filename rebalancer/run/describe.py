"""What strategies and presets are, from their own docstrings, arguments and comments."""

import inspect
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

import yaml

from rebalancer.engine.plugins import StrategyType, strategies
from rebalancer.errors import UsageError
from rebalancer.policy.evictor import DEFAULT_EVICTOR
from rebalancer.policy.suggest import did_you_mean
from rebalancer.run.arguments_text import argument_lines
from rebalancer.run.policies import known_plugins, preset_directory, presets, schema

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
    yield _manual(strategy) if strategy else _evictor_manual()
    yield ""
    yield f"Extension point: {' and '.join(sorted(plugins[name].points))}"
    yield "Arguments:"
    yield from argument_lines(schema(), plugins[name].args.__name__)
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


def _manual(strategy: StrategyType) -> str:
    module = inspect.getmodule(strategy)
    return ((module.__doc__ if module else "") or strategy.__doc__ or "").strip()


def _evictor_manual() -> str:
    purpose = (DEFAULT_EVICTOR.args.__doc__ or "").strip()
    return f"{DEFAULT_EVICTOR.name}: {purpose[:1].lower()}{purpose[1:]}\n\nEvery profile has it, configured or not."


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
