"""How many replacements came to a node that the program's report had named for them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def as_foreseen(report: str, places: Mapping[str, str], replacements: Iterable[str]) -> tuple[int, int]:
    """Return how many replacements came where they were foreseen, and how many evictions said where.

    Which replacement came for which pod nobody knows: an owner's are alike, so each is counted once for a pod of its
    owner whose set of nodes holds the node, the smallest sets first.

    Args:
        report: The program's, as JSON; another program's output foresees nothing.
        places: The node of each pod, by name.
        replacements: Their names.
    """
    told = [(_owner(each["name"]), _nodes(each)) for each in _evictions(report)]
    told = sorted((each for each in told if each[1]), key=lambda each: len(each[1]))
    landed = Counter((_owner(name), places[name]) for name in replacements)
    hits = 0
    for owner, nodes in told:
        node = next((node for node in nodes if landed[owner, node]), None)
        if node:
            landed[owner, node] -= 1
            hits += 1
    return hits, len(told)


def _evictions(report: str) -> Sequence[Mapping[str, Any]]:
    try:
        document = json.loads(report)
    except ValueError:
        return ()
    return document.get("evictions", ()) if isinstance(document, dict) else ()


def _nodes(eviction: Mapping[str, Any]) -> Sequence[str]:
    destination = eviction.get("destination")
    nodes = destination.get("nodes") if isinstance(destination, dict) else None
    return nodes or ()


def _owner(name: str) -> str:
    """The owner of a pod: its name without the part that tells its pods apart."""
    return name.rpartition("-")[0]
