"""What a strategy looked at, in a sentence."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import StrategyRun
from rebalancer.eviction.observation import (
    NONE_OVER,
    NONE_RECEIVES,
    NONE_UNDER,
    OVERUTILIZED,
    TOO_FEW_UNDER,
    Observation,
)
from rebalancer.report.words.numbers import age_text

#: The words after each number; figures stand in braces.
_COUNTED = {
    "pods": "considered",
    "older": "older than {age}",
    "matching": "that match the arguments",
    "restarted": "with {restarts} restarts or more",
    "intolerant": "on nodes with a taint that they do not tolerate",
    "misplaced": "whose node affinity wants another node",
    "conflicting": "next to pods that they must not be next to",
    "constraints": "spread constraints",
    "crowded": "pods too many in their domains",
    "doubled": "owners with several replicas on a node",
}
_NOUNS = {"pods": "pod", "failed": "failed pod"}
_ONE = {
    "constraints": "spread constraint",
    "crowded": "pod too many in its domain",
    "doubled": "owner with several replicas on a node",
}

_OBSTACLES = {
    NONE_OVER: "nothing has to move",
    NONE_UNDER: "there is no node to empty",
    NONE_RECEIVES: "nothing can be received",
    TOO_FEW_UNDER: "numberOfNodes asks for more than {numberOfNodes}",
}


def summary(run: StrategyRun, snapshot: Snapshot) -> str:
    """Return what a strategy looked at, like `214 pods considered, 0 older than 30d`; empty if it counted nothing."""
    observed = run.observed
    if not observed.counts:
        return ""
    if "nodes" in observed.counts:
        return _of_nodes(observed) + (
            "" if observed.obstacle or _asked(run) else "; no pod of these came into question"
        )
    absent = _absent(run.namespaces, snapshot)
    if absent and not observed.counts.get("pods", observed.counts.get("failed", 0)):
        return absent
    told = ", ".join(_counted(name, number, observed.figures) for name, number in observed.counts.items())
    return f"{told}; {absent}" if absent else told


def _asked(run: StrategyRun) -> bool:
    return bool(run.evicted or run.unknown or run.refused)


def _counted(name: str, number: int, figures: Mapping[str, float]) -> str:
    shown = {key: age_text(value) if key == "age" else f"{value:g}" for key, value in figures.items()}
    words = _COUNTED.get(name, "" if name in _NOUNS else name).format(**shown)
    noun = _plural(number, _NOUNS[name]) if name in _NOUNS else str(number)
    return f"{noun} {_ONE.get(name, words) if number == 1 else words}".rstrip()


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _of_nodes(observed: Observation) -> str:
    counts = observed.counts
    of = f"of {_plural(counts['nodes'], 'node')}"
    parts = []
    if "over" in counts:
        parts.append(f"{counts['over'] or 'none'} {of} over target")
    for key, words in (("under", "under thresholds"), ("below", "below the mean")):
        if key in counts:
            parts.append(f"{counts[key] or 'none'} {words}" if parts else f"{counts[key] or 'none'} {of} {words}")
    if counts.get("receivers") is not None:
        parts.append(f"{counts['receivers'] or 'none'} that can receive")
    return f"{', '.join(parts)}{_outcome(observed)}"


def _outcome(observed: Observation) -> str:
    if observed.obstacle:
        return f": {_OBSTACLES[observed.obstacle].format(**{key: f'{v:g}' for key, v in observed.figures.items()})}"
    left = sum(node.state_after == OVERUTILIZED for node in observed.nodes)
    return f"; {left or 'none'} over target afterwards" if observed.counts.get("over") else ""


def _absent(wanted: Iterable[str], snapshot: Snapshot) -> str:
    """Return which of the namespaces named in the policy have no pod, with a similar name if there is one."""
    if not wanted:
        return ""
    inhabited = {pod.namespace for pod in snapshot.pods}
    known = set(snapshot.namespaces) if snapshot.namespaces is not None else None
    empty = [name for name in wanted if name not in inhabited]
    return "; ".join(f"0 pods in namespace {name}{_why_empty(name, inhabited, known)}" for name in empty)


def _why_empty(name: str, inhabited: set[str], known: set[str] | None) -> str:
    if known is not None and name in known:
        return ""
    near = get_close_matches(name, sorted(inhabited | (known or set())), n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    # Without a list of namespaces only those with pods are known.
    return f": there is no such namespace{meant}" if known is not None else f": no pod has that namespace{meant}"
