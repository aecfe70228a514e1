"""Decode equal bytes once.

Replicas are copies: thousands of pods share a few label sets, owners and specs.  Equal bytes have equal meaning, so
each is decoded once and shared, which saves time and memory and makes `is` a valid cache key.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Interned(Generic[K, T]):
    """One object for each distinct key, made when the key is first seen."""

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make
        self._known: dict[K, T] = {}

    def __call__(self, key: K) -> T:
        """Return the object for a key."""
        known = self._known
        if key not in known:
            known[key] = self._make(key)
        return known[key]
