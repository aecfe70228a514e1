"""Evictions grouped for people, since there may be many: by strategy, and within a strategy by owner."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnerGroup:
    """Pods of one owner that one strategy evicts, in their order; `owner` is empty for pods without one."""

    namespace: str
    owner: str
    pods: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class StrategyGroup:
    """What one strategy of one profile evicts."""

    profile: str
    strategy: str
    owners: tuple[OwnerGroup, ...]

    @property
    def count(self) -> int:
        """How many pods."""
        return sum(len(group.pods) for group in self.owners)


def grouped(evictions: Iterable[Row]) -> tuple[StrategyGroup, ...]:
    """Return the evictions by strategy, in the order of their first pods; in each, the owner that loses most first."""
    found: dict[tuple[str, str], dict[tuple[str, str], list[Row]]] = {}
    for each in evictions:
        owners = found.setdefault((each["profile"], each["strategy"]), {})
        owners.setdefault((each["namespace"], owner_text(each)), []).append(each)
    return tuple(StrategyGroup(*key, _by_size(owners)) for key, owners in found.items())


def owner_text(row: Row) -> str:
    """Return the owner like `ReplicaSet/web-5f6b`, empty for a pod without one."""
    owner = row["owner"]
    return f"{owner['kind']}/{owner['name']}" if owner else ""


def _by_size(owners: Mapping[tuple[str, str], list[Row]]) -> tuple[OwnerGroup, ...]:
    ranked = sorted(owners.items(), key=lambda each: (-len(each[1]), each[0]))
    return tuple(OwnerGroup(*key, tuple(pods)) for key, pods in ranked)
