"""Zones, and what pods wish of them: to be spread over them, to be in the one of their volume, or rather in one."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.e2e.api import Object
from tests.e2e.builders import claim, claim_volume, volume
from tests.outcome.load import Workload

ZONES = ("a", "b", "c")
ZONE = "topology.kubernetes.io/zone"
STRICT, SOFT = "DoNotSchedule", "ScheduleAnyway"


@dataclass(frozen=True)
class Wish:
    """What the pods of one owner wish.

    Attributes:
        spread: over zones, with a skew of 1, strictly or softly; empty if that is not asked for.
        volume: the zone of their volume; empty without one.
        prefers: the zone that they prefer, with weight 100; empty if they do not care.
    """

    spread: str = ""
    volume: str = ""
    prefers: str = ""


NO_WISH = Wish()


def zone_of(node: str) -> str:
    """Return the zone of a node by its name, which ends in its number."""
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
        found["spread"] = [constraint]
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
    """Return the owners whose pods are spread less evenly than before."""
    return {owner for owner, skew in after.items() if skew > before.get(owner, 0)}
