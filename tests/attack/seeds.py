"""How long an attack lasts."""

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

VARIABLE = "REBALANCER_ATTACK"
#: Of a property, in `make test`.
EXAMPLES = 30

T = TypeVar("T")


def seeds(count: int) -> range:
    """Return so many seeds, times what the environment asks for; a seed names its round for ever."""
    return range(count * int(os.environ.get(VARIABLE) or 1))


def some(all_of_them: Sequence[T], few: int = 1) -> Sequence[T]:
    """Return the first few of what takes long, and all of them in an attack."""
    return all_of_them if os.environ.get(VARIABLE) else all_of_them[:few]


def examples(count: int) -> settings:
    """Let a property be tried on so many examples, and in an attack on as many times more as all others are."""
    return settings(max_examples=count * settings.default.max_examples // EXAMPLES)
