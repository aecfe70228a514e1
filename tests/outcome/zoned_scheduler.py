"""How the scheduler of a few lines treats zones."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tests.outcome.zones import SOFT, STRICT, ZONES, Wish, zone_of


def allowed(nodes: Sequence[str], wish: Wish, siblings: Mapping[str, int]) -> list[str]:
    """Return the nodes that a pod may go to, with so many pods of its owner on each node."""
    zones = _by_zone(siblings)
    least = min(zones[zone] for zone in ZONES)
    full = {zone for zone in ZONES if wish.spread == STRICT and zones[zone] + 1 - least > 1}
    return [name for name in nodes if zone_of(name) not in full and wish.volume in ("", zone_of(name))]


def spreading(nodes: Sequence[str], wish: Wish, siblings: Mapping[str, int], *, zoned: bool) -> dict[str, int]:
    """Return what PodTopologySpread scores, by the owner's constraint or by the scheduler's two."""
    if wish.spread == STRICT:
        return dict.fromkeys(nodes, 0)
    raw = {name: round(_raw(name, len(nodes), wish, siblings, _by_zone(siblings), zoned=zoned)) for name in nodes}
    most, least = max(raw.values()), min(raw.values())
    return {name: 2 * (100 * (most + least - each) // most) if most else 200 for name, each in raw.items()}


def _raw(
    name: str, nodes: int, wish: Wish, siblings: Mapping[str, int], zones: Mapping[str, int], *, zoned: bool
) -> float:
    over_zones = zones[zone_of(name)] * math.log(len(ZONES) + 2)
    if wish.spread == SOFT:
        return over_zones
    return siblings.get(name, 0) * math.log(nodes + 2) + 2 + (over_zones + 4 if zoned else 0)


def preference(name: str, wish: Wish) -> int:
    """Return what NodeAffinity scores."""
    return 200 if wish.prefers and wish.prefers == zone_of(name) else 0


def _by_zone(siblings: Mapping[str, int]) -> Counter[str]:
    zones: Counter[str] = Counter()
    for name, count in siblings.items():
        zones[zone_of(name)] += count
    return zones
