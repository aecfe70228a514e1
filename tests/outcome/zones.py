"""Zones, and what pods wish of them: to be spread over them, to be in the one of their volume, or rather in one.

With what the scheduler of a few lines (`simulation`) makes of it.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.api import Object
from tests.e2e.builders import claim, claim_volume, volume
from tests.outcome.load import Workload

ZONES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
STRICT, SOFT = "DoNotSchedule", "ScheduleAnyway"


@dataclass(frozen=True)
class Wish:
    """What the pods of one owner wish."""

    spread: str = ""  # over zones, with a skew of 1, strictly or softly; empty if that is not asked for
    volume: str = ""  # the zone of their volume; empty without one
    prefers: str = ""  # the zone that they prefer, with weight 100; empty if they do not care


NO_WISH = Wish()


def zone_of(node: str) -> str:
    return ZONES[int(node[-2:]) % len(ZONES)]


def make_wishes(load: Iterable[Workload], seed: int) -> Mapping[str, Wish]:
    """Return by owner what its pods wish: single pods have a volume, of the others each third wishes the same."""
    dice = random.Random(f"zones {seed}")
    return {each.name: _wish(each, dice) for each in load}


def _wish(workload: Workload, dice: random.Random) -> Wish:
    if workload.replicas == 1:
        return Wish(volume=dice.choice(ZONES))
    return dice.choice((Wish(spread=STRICT), Wish(spread=SOFT), Wish(prefers=dice.choice(ZONES))))


def wished(owner: str, wish: Wish) -> Object:
    """Return what a pod's template says of its owner's wish, in the words of `tests.e2e.builders`."""
    found: Object = {}
    if wish.spread:
        selector = {"matchLabels": {"app": owner}}
        constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": wish.spread, "labelSelector": selector}
        found["topologySpreadConstraints"] = [constraint]
    if wish.prefers:
        term = {"weight": 100, "preference": _in_zone(wish.prefers)}
        found["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    if wish.volume:
        found["volumes"] = [claim_volume(owner)]
    return found


def volume_in(zone: str, name: str) -> list[Object]:
    """Return a volume that only nodes of one zone reach, and the claim that is bound to it."""
    made, claimed = volume(name, "by-hand"), claim(name, "by-hand")
    made["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [_in_zone(zone)]}}
    claimed["spec"]["volumeName"] = name
    return [made, claimed]


def _in_zone(zone: str) -> Object:
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}


def skews(places: Iterable[tuple[str, str]]) -> Mapping[str, int]:
    """Return by owner how many more of its pods are in its fullest zone than in its emptiest.

    Args:
        places: the owner and the node of each pod that has a node.
    """
    counts: dict[str, Counter[str]] = {}
    for owner, node in places:
        counts.setdefault(owner, Counter())[zone_of(node)] += 1
    return {
        owner: max(count[zone] for zone in ZONES) - min(count[zone] for zone in ZONES)
        for owner, count in counts.items()
    }


def worse(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    return {owner for owner, skew in after.items() if skew > before.get(owner, 0)}


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
    return 200 if wish.prefers and wish.prefers == zone_of(name) else 0


def _by_zone(siblings: Mapping[str, int]) -> Counter[str]:
    zones: Counter[str] = Counter()
    for name, count in siblings.items():
        zones[zone_of(name)] += count
    return zones
