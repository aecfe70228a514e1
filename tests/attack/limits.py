"""Limits and PDBs, by rules told here once more."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.fake_rules import covers

Object = dict[str, Any]

_PLACES = {
    "Total": lambda _: "",
    "PerNode": lambda pod: pod["spec"]["nodeName"],
    "PerNamespace": lambda pod: pod["metadata"]["namespace"],
}


def exceeded(
    objects: Sequence[Object], limits: Mapping[str, Any], gone: Sequence[Object], before: Sequence[Object] = ()
) -> Iterator[str]:
    """Yield each limit and PDB that these pods exceed together.

    More may have been on their way `before` than is allowed now; then nothing else may go.
    """
    for name, place in _PLACES.items():
        limit = limits.get(f"maxNoOfPodsToEvict{name}")
        counts, earlier = Counter(map(place, gone)), Counter(map(place, before))
        if limit is not None and any(count > max(limit, earlier[where]) for where, count in counts.items()):
            yield f"{name}: {dict(counts)} went, where {limit} may"
    for pdb in (each for each in objects if each["kind"] == "PodDisruptionBudget"):
        count, earlier_ones = (sum(covers(pdb, pod) and _is_ready(pod) for pod in pods) for pods in (gone, before))
        if count > max(pdb["status"]["disruptionsAllowed"], earlier_ones):
            yield f"{count} pods of PDB {pdb['metadata']['name']}"


def _is_ready(pod: Object) -> bool:
    return bool(pod["status"]["containerStatuses"][0]["ready"])
