"""What strategies are, from their own docstrings and arguments."""

import json
import sys
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from rebalancer.errors import UsageError
from rebalancer.plugins import StrategyType, strategies


def list_strategies() -> Iterator[str]:
    """Yield a line for each strategy."""
    known = strategies()
    width = max(map(len, known))
    for name, strategy in known.items():
        yield f"{name:<{width}}  {strategy.point:<10}  {(strategy.__doc__ or '').strip().splitlines()[0]}"


def describe_strategy(name: str) -> Iterator[str]:
    """Yield the manual of one strategy and its arguments.

    Raises:
        UsageError: there is no such strategy.
    """
    known = strategies()
    if name not in known:
        raise UsageError(f"there is no strategy {name!r}; there are {', '.join(known)}")
    strategy = known[name]
    yield _manual(strategy)
    yield ""
    yield f"Extension point: {strategy.point}"
    yield "Arguments:"
    for field in strategy.Args.model_fields.values():
        yield f"  {field.alias}: {field.description} ({_default(field)})"


def _manual(strategy: StrategyType) -> str:
    module = sys.modules[strategy.__module__]
    return (module.__doc__ or strategy.__doc__ or "").strip()


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default is None or default in ((), "") or not isinstance(default, (bool, int, float, str, tuple)):
        return "optional"
    return f"default {json.dumps(default)}"
