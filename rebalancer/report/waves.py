"""Waves in a report: avoided nodes, moved pods, where their replacements landed, and how even the nodes are."""

from collections.abc import Callable, Mapping
from statistics import pstdev
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.ledger import SteeredWaves, StrategyRun
from rebalancer.eviction.observation import WeighedNode
from rebalancer.eviction.steering import Landing, Move

_DECIMALS = 2

#: By node name, then by resource: percent.
_Shares = Mapping[str, Mapping[str, float]]


def waves_document(run: StrategyRun, *, dry_run: bool) -> list[dict[str, Any]]:
    """Return the waves that a strategy made, in order; in a dry run nothing has landed."""
    return [_wave(steered, dry_run=dry_run) for steered in run.waves]


def _wave(steered: SteeredWaves, *, dry_run: bool) -> dict[str, Any]:
    landed = {} if dry_run else {id(each.move.pod): each for each in steered.landings}
    moves = [{**_move(move), "landed": _landed(landed.get(id(move.pod)))} for move in steered.wave.moves]
    return {"avoid": dict(sorted(steered.wave.avoid.items())), "moves": moves}


def _move(move: Move) -> dict[str, Any]:
    pod = move.pod
    names = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "node": pod.node}
    return {**names, "expected": move.expected, "likely": list(move.destination.nodes)}


def _landed(landing: Landing | None) -> dict[str, Any] | None:
    if landing is None:
        return None
    ready = None if landing.ready_seconds is None else round(landing.ready_seconds, 3)
    names = {"node": landing.node, "replacement": landing.replacement or None}
    return {**names, "readySeconds": ready, "foreseen": landing.foreseen}


def evenness_document(run: StrategyRun, cluster: Cluster, *, dry_run: bool) -> dict[str, Any] | None:
    """Return how even nodes are before, as foreseen, and after; None for a strategy that made no waves.

    `after` counts each replacement where it landed, with the usage of the evicted pod; it is None in a dry run.
    """
    nodes, targets = run.observed.nodes, run.observed.targets
    if not run.waves or not nodes:
        return None
    after = {node.name: node.after for node in nodes}
    states = {
        "before": {node.name: node.before for node in nodes},
        "foreseen": after if dry_run else _as_foreseen(run, after, cluster),
        "after": None if dry_run else after,
    }
    return {
        "deviation": {name: _each(states, _deviation(name)) for name in targets},
        "highest": {name: _each(states, _highest(name)) for name in targets},
        "nodesOverTarget": _each(states, lambda shares: float(_over(shares, targets))),
    }


def _each(states: Mapping[str, _Shares | None], figure: Callable[[_Shares], float]) -> dict[str, float | None]:
    return {name: None if shares is None else round(figure(shares), _DECIMALS) for name, shares in states.items()}


def _deviation(resource: str) -> Callable[[_Shares], float]:
    return lambda shares: pstdev(share.get(resource, 0.0) for share in shares.values())


def _highest(resource: str) -> Callable[[_Shares], float]:
    return lambda shares: max(share.get(resource, 0.0) for share in shares.values())


def _over(shares: _Shares, targets: Mapping[str, float]) -> int:
    return sum(any(share.get(name, 0.0) > edge for name, edge in targets.items()) for share in shares.values())


def _as_foreseen(run: StrategyRun, after: _Shares, cluster: Cluster) -> _Shares:
    """Return the nodes as if every replacement had landed where it was expected."""
    shares = {name: dict(share) for name, share in after.items()}
    for steered in run.waves:
        for landing in steered.landings:
            if landing.node != landing.move.expected:
                _add(shares, landing.move, landing.node, cluster, -1)
                _add(shares, landing.move, landing.move.expected, cluster, 1)
    return shares


def _add(shares: dict[str, dict[str, float]], move: Move, name: str | None, cluster: Cluster, sign: int) -> None:
    node = cluster.node(name) if name else None
    if node is None or node.name not in shares:
        return
    share = shares[node.name]
    for resource in share:
        if offered := node.allocatable.get(resource):
            share[resource] += sign * 100 * move.usage.get(resource, 0) / offered


def weighed_document(node: WeighedNode) -> dict[str, Any]:
    """Return a node that a strategy weighed, for the report."""
    percents = {"before": dict(node.before), "after": dict(node.after)}
    return {"name": node.name, **percents, "state": node.state, "stateAfter": node.state_after}
