"""Decode equal bytes once.

Replicas are copies: thousands of pods share a few label sets, owners and specs.  Equal bytes have equal meaning, so
each is decoded once and shared, which saves time and memory and makes `is` a valid cache key.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Interned(dict[K, T]):
    """One object for each distinct key, made when the key is first looked up."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make

    def __missing__(self, key: K) -> T:
        made = self[key] = self._make(key)
        return made
