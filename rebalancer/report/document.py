"""The report as a document; its keys are an interface (policies/schema/report-v1.json)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from statistics import pstdev
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry, Ledger, SteeredWaves, StrategyRun
from rebalancer.eviction import observation
from rebalancer.eviction.causes import Cause
from rebalancer.eviction.steering import ActualPlacement, Held, Move
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown, Verdict
from rebalancer.report.layout import age_text, plural
from rebalancer.report.overview import overview
from rebalancer.report.words import notice_text, text

#: The words after each number, of one and of several where they differ; figures stand in braces.
_COUNTED: Mapping[str, str | tuple[str, str]] = {
    "pods": ("pod considered", "pods considered"),
    "failed": ("failed pod", "failed pods"),
    "older": "older than {age}",
    "matching": ("that matches the arguments", "that match the arguments"),
    "restarted": "with {restarts} restarts or more",
    "intolerant": (
        "on a node with a taint that it does not tolerate",
        "on nodes with a taint that they do not tolerate",
    ),
    "misplaced": "whose node affinity wants another node",
    "conflicting": ("next to pods that it must not be next to", "next to pods that they must not be next to"),
    "constraints": ("spread constraint", "spread constraints"),
    "crowded": ("pod too many in its domain", "pods too many in their domains"),
    "doubled": ("owner with several replicas on a node", "owners with several replicas on a node"),
}
_COUNTED_NODES = {
    "over": "over target",
    "under": "under thresholds",
    "below": "below the mean",
    "receivers": "that can receive",
}
_OBSTACLES = {
    observation.NONE_OVER: "nothing has to move",
    observation.NONE_UNDER: "there is no node to empty",
    observation.NONE_RECEIVES: "nothing can be received",
    observation.TOO_FEW_UNDER: "numberOfNodes asks for more than {numberOfNodes}",
}


def summary(run: StrategyRun, snapshot: Snapshot) -> str:
    """Return what a strategy looked at, like `214 pods considered, 0 older than 30d`; empty if it counted nothing."""
    observed = run.observed
    if not observed.counts:
        return ""
    if "nodes" in observed.counts:
        asked_for = run.evicted or run.unknown or run.refused
        return _of_nodes(observed) + ("" if observed.obstacle or asked_for else "; no pod of these came into question")
    absent = _absent(run.namespaces, snapshot)
    if absent and not observed.counts.get("pods", observed.counts.get("failed", 0)):
        return absent
    shown = {key: age_text(value) if key == "age" else f"{value:g}" for key, value in observed.figures.items()}
    told = []
    for name, number in observed.counts.items():
        words = _COUNTED.get(name, name)
        told.append(f"{number} {(words if isinstance(words, str) else words[number != 1]).format(**shown)}")
    return "; ".join(filter(None, (", ".join(told), absent)))


def _of_nodes(observed: observation.Observation) -> str:
    counts = observed.counts
    of = f" of {plural(counts['nodes'], 'node')}"
    parts: list[str] = []
    for key, words in _COUNTED_NODES.items():
        if counts.get(key) is not None:
            parts.append(f"{counts[key] or 'none'}{'' if parts or key == 'receivers' else of} {words}")
    if observed.obstacle:
        figures = {key: f"{value:g}" for key, value in observed.figures.items()}
        return f"{', '.join(parts)}: {_OBSTACLES[observed.obstacle].format(**figures)}"
    left = sum(node.state_after == observation.OVERUTILIZED for node in observed.nodes)
    return ", ".join(parts) + (f"; {left or 'none'} over target afterwards" if counts.get("over") else "")


def _absent(wanted: Iterable[str], snapshot: Snapshot) -> str:
    """Return which of the namespaces named in the policy have no pod, with a similar name if there is one."""
    if not wanted:
        return ""
    inhabited, known = {pod.namespace for pod in snapshot.pods}, snapshot.namespaces
    every = sorted(inhabited.union(known or ()))
    # Without a list of namespaces only those with pods are known.
    why = "no pod has that namespace" if known is None else "there is no such namespace"
    told = []
    for name in wanted:
        if name in inhabited:
            continue
        near = () if name in every else get_close_matches(name, every, n=1)
        absent = "" if name in every else f": {why}{f' (did you mean {near[0]}?)' if near else ''}"
        told.append(f"0 pods in namespace {name}{absent}")
    return "; ".join(told)


#: Decimals of figures; further ones are floating-point noise.
_DECIMALS = 6

#: Where the clock of a cycle comes from.
CLOCKS = {
    "option": "given by --now",
    "snapshot": "recorded in the snapshot",
    "newest": "the newest time in the file",
    "wall": "the wall clock",
}


@dataclass(frozen=True, slots=True)
class Finished:
    """A cycle that has come to its end."""

    ledger: Ledger  # the evictions that strategies asked for, and the answers
    cluster: Cluster  # without the pods that went
    dry_run: bool  # whether nothing was evicted for real
    where: Mapping[str, str | None]  # `{"context", "server"}` or `{"file"}`
    clock: str  # a key of `CLOCKS`
    warnings: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()  # those of the warnings that the reader must not overlook
    leaves_marks: bool = False  # whether our own soft taints stay on nodes


def document(finished: Finished) -> dict[str, Any]:
    """Return the report of a cycle."""
    ledger, cluster, dry_run = finished.ledger, finished.cluster, finished.dry_run
    gone, snapshot = [entry.pod for entry in ledger.evictions], cluster.snapshot
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "Report",
        "dryRun": dry_run,
        "now": timestamp(cluster.now),
        "clock": finished.clock,
        "cluster": dict(finished.where),
        "skipped": ledger.skipped,
        "evictions": [_eviction(entry) for entry in ledger.evictions],
        "unknown": [_eviction(entry) | _answered(entry.verdict) for entry in ledger.unknown],
        "refusals": [_asked(entry) | _answered(entry.verdict) for entry in ledger.refusals],
        "failures": [_asked(entry) | _answered(entry.verdict) for entry in ledger.failures],
        "strategies": [_strategy(run, cluster, dry_run=dry_run) for run in ledger.runs],
        "overview": overview(gone, snapshot.pods, snapshot.budgets, ledger.limits, finished.alarms),
        "nodes": {"total": len(snapshot.nodes), "considered": len(cluster.nodes)},
        "heldNodes": _held(ledger, cluster),
        "warnings": list(dict.fromkeys((*finished.warnings, *snapshot.warnings, *map(notice_text, ledger.warnings)))),
    }


def timestamp(time: datetime) -> str:
    """Return a time as Kubernetes writes it."""
    return time.isoformat().replace("+00:00", "Z")


def cause_document(cause: Cause) -> dict[str, Any]:
    """Return a cause for the report: an object with its code and its figures by name."""
    return {"code": cause.code.value} | {_camel_case(name): _figure(each) for name, each in cause.details.items()}


def _figure(value: Any) -> Any:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict | Mapping):
        return {_camel_case(name): _figure(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_figure(each) for each in value]
    return round(value, _DECIMALS) if isinstance(value, float) else value


@cache
def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _strategy(run: StrategyRun, cluster: Cluster, *, dry_run: bool) -> dict[str, Any]:
    observed = run.observed
    return {
        "profile": run.profile,
        "strategy": run.strategy,
        "evicted": run.evicted,
        "unknown": run.unknown,
        "refused": run.refused,
        "seconds": round(run.seconds, 6),
        "error": run.error,
        "summary": summary(run, cluster.snapshot),
        "counts": dict(observed.counts),
        "obstacle": observed.obstacle or None,
        "thresholds": dict(observed.thresholds),
        "targetThresholds": dict(observed.targets),
        "nodes": [_weighed(node) for node in observed.nodes],
        "waves": [_wave(steered, dry_run=dry_run) for steered in run.waves],
        "evenness": _evenness(run, cluster, dry_run=dry_run),
    }


def _weighed(node: observation.WeighedNode) -> dict[str, Any]:
    percents = {"before": dict(node.before), "after": dict(node.after)}
    return {"name": node.name, **percents, "state": node.state, "stateAfter": node.state_after}


def _held(ledger: Ledger, cluster: Cluster) -> list[dict[str, Any]]:
    """Return the nodes that are held after a cycle, by name; one that this run could not hold has a problem."""
    earlier = [Held(node.name, node.held_until) for node in cluster.snapshot.nodes if node.held_until is not None]
    entries = {
        each.node: {
            "name": each.node,
            "until": timestamp(each.until),
            "byThisRun": each not in earlier,
            "problem": each.problem or None,
        }
        for each in (*earlier, *ledger.held)
    }
    return [entries[name] for name in sorted(entries)]


def _eviction(entry: Entry) -> dict[str, Any]:
    lands, owner = entry.destination, entry.pod.controller
    restarted = entry.verdict.restarted if isinstance(entry.verdict, Granted) else ""
    way = f"; the rollout of Deployment {restarted} is restarted, nothing is evicted" if restarted else ""
    return {
        **_named(entry.pod),
        "owner": owner and {"kind": owner.kind, "name": owner.name},
        "profile": entry.profile,
        "strategy": entry.strategy,
        "reason": text(entry.because) + way,
        "cause": cause_document(entry.because),
        "destination": lands and {"nodes": list(lands.nodes), "more": lands.more, "share": list(lands.shares)},
        "background": isinstance(entry.verdict, Granted) and entry.verdict.background,
        "restarted": restarted or None,
    }


def _answered(verdict: Verdict) -> dict[str, Any]:
    match verdict:
        case Refused(cause):
            return {"by": verdict.by, "reason": text(cause), "cause": cause_document(cause)}
        case Unknown(error) | Failed(error):
            return {"error": error}
    return {}


def _asked(entry: Entry) -> dict[str, Any]:
    whose = {"profile": entry.profile, "strategy": entry.strategy}
    return {"namespace": entry.pod.namespace, "name": entry.pod.name, "node": entry.pod.node, **whose}


def _wave(steered: SteeredWaves, *, dry_run: bool) -> dict[str, Any]:
    landed = {} if dry_run else {id(each.move.pod): each for each in steered.placements}
    moves = [
        {
            **_named(move.pod),
            "expected": move.expected,
            "likely": list(move.destination.nodes),
            "landed": _landed(landed.get(id(move.pod))),
        }
        for move in steered.wave.moves
    ]
    return {"avoid": dict(sorted(steered.wave.avoid.items())), "moves": moves}


def _named(pod: Pod) -> dict[str, str]:
    return {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": pod.node}


def _landed(placement: ActualPlacement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    ready = None if placement.ready_seconds is None else round(placement.ready_seconds, 3)
    names = {"node": placement.node, "replacement": placement.replacement or None}
    return {**names, "readySeconds": ready, "foreseen": placement.foreseen}


#: By node name, then by resource: percent.
_Shares = Mapping[str, Mapping[str, float]]


def _evenness(run: StrategyRun, cluster: Cluster, *, dry_run: bool) -> dict[str, Any] | None:
    """Return how even nodes are before, as foreseen, and after (None in a dry run); None without waves."""
    nodes, targets = run.observed.nodes, run.observed.targets
    if not run.waves or not nodes:
        return None
    after = {node.name: node.after for node in nodes}
    states = {
        "before": {node.name: node.before for node in nodes},
        "foreseen": after if dry_run else _as_foreseen(run, after, cluster),
        "after": None if dry_run else after,
    }

    def of_each(figure: Callable[[list[float]], float]) -> dict[str, dict[str, float | None]]:
        return {
            name: {
                state: None if shares is None else round(figure([each.get(name, 0.0) for each in shares.values()]), 2)
                for state, shares in states.items()
            }
            for name in targets
        }

    def over(shares: _Shares) -> float:
        return float(sum(any(each.get(name, 0.0) > edge for name, edge in targets.items()) for each in shares.values()))

    counts = {name: shares and over(shares) for name, shares in states.items()}
    return {"deviation": of_each(pstdev), "highest": of_each(max), "nodesOverTarget": counts}


def _as_foreseen(run: StrategyRun, after: _Shares, cluster: Cluster) -> _Shares:
    """Return the nodes as if every replacement had landed where it was expected."""
    shares = {name: dict(share) for name, share in after.items()}
    for steered in run.waves:
        for placement in steered.placements:
            if placement.node != placement.move.expected:
                _add(shares, placement.move, placement.node, cluster, -1)
                _add(shares, placement.move, placement.move.expected, cluster, 1)
    return shares


def _add(shares: dict[str, dict[str, float]], move: Move, name: str | None, cluster: Cluster, sign: int) -> None:
    node = cluster.node(name) if name else None
    if node is None or node.name not in shares:
        return
    share = shares[node.name]
    for resource in share:
        if offered := node.allocatable.get(resource):
            share[resource] += sign * 100 * move.usage.get(resource, 0) / offered
