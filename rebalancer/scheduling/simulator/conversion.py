"""Arguments of plugins, from a decoded document to a type."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rebalancer.scheduling.simulator.configuration import ConfigurationError

Args = Mapping[str, Any]
T = TypeVar("T")


def converted(plugin: str, args: Args, kind: type[T]) -> T:
    """Return a plugin's arguments.

    Raises:
        ConfigurationError: a field has the wrong type.
    """
    try:
        return msgspec.convert(args, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{plugin}: {error}") from None
