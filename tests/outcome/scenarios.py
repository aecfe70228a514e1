"""The situations that the outcome is measured in."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.api import Object

STRATEGIES = ("LowNodeUtilization", "HighNodeUtilization")
#: What only this project knows.
OURS = ("selection", "keepFree", "nodeGroups", "destinationThresholds")


@dataclass(frozen=True)
class Bounds:
    """What nodes should be within, in percent of allocatable or, by deviation, in points from the mean of all nodes."""

    low: Mapping[str, float]
    high: Mapping[str, float]
    deviation: bool


def bounds_of(policy: Object) -> Bounds:
    """Return what the policy's strategy aims at; where nodes are emptied, what pods may fill, or else 100 %."""
    args = configured(policy, *STRATEGIES)
    high = args.get("targetThresholds") or args.get("destinationThresholds") or dict.fromkeys(args["thresholds"], 100)
    return Bounds(args["thresholds"], high, args.get("useDeviationThresholds", False))


def in_reference_words(policy: Object) -> Object:
    """Return the policy without what only this project knows: of metricsUtilization the source stays."""
    plain = copy.deepcopy(policy)
    plain.pop("steering", None)
    args = configured(plain, *STRATEGIES)
    for name in OURS:
        args.pop(name, None)
    if "metricsUtilization" in args:
        args["metricsUtilization"] = {"source": args["metricsUtilization"]["source"]}
    return plain


def configured(policy: Object, *names: str) -> Object:
    entries = [entry for profile in policy["profiles"] for entry in profile["pluginConfig"]]
    found: Object = next(entry["args"] for entry in entries if entry["name"] in names)
    return found


Percents = Mapping[str, int]


def _policy(strategy: str, args: Object, *sources: str, **top: Any) -> Object:
    """Return a policy of one strategy that remembers nothing: here cycles have no time between them."""
    configs = [{"name": "DefaultEvictor", "args": {"nodeFit": True}}, {"name": strategy, "args": args}]
    profile = {"name": "outcome", "pluginConfig": configs, "plugins": {"balance": {"enabled": [strategy]}}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "trust": {"enabled": False},
        "metricsProviders": [{"source": each} for each in sources],
        "profiles": [profile],
        **top,
    }


def _low(thresholds: Percents, targets: Percents, *sources: str, **more: Any) -> Object:
    """Nodes above a target in cpu or memory hand over to those below the thresholds of both."""
    usage = {"source": sources[0], "selection": "relief", "rest": "2m"}  # cycles are half a minute apart
    args = {"thresholds": thresholds, "targetThresholds": targets, "metricsUtilization": usage, **more}
    return _policy("LowNodeUtilization", args, *sources)


def _pack(percent: int, *sources: str, args: Object | None = None, **top: Any) -> Object:
    """Nodes of which at most so much is requested, or used, are emptied as a whole."""
    emptied = {"thresholds": _both(percent), "selection": "compaction", **(args or {})}
    return _policy("HighNodeUtilization", emptied, *sources, **top)


def _both(percent: int) -> Percents:
    return {"cpu": percent, "memory": percent}


USAGE = "KubernetesMetrics"
HALF = _low(_both(35), _both(55), USAGE)
DEVIATION = _low(_both(10), _both(10), USAGE, useDeviationThresholds=True)
HOT = _low({"cpu": 44, "memory": 58}, {"cpu": 51, "memory": 68}, USAGE)
BY_USAGE = {"destinationThresholds": _both(70), "metricsUtilization": {"source": USAGE}}
#: A scheduler that packs.
STRATEGY = {"type": "MostAllocated", "resources": [{"name": name, "weight": 1} for name in ("cpu", "memory")]}
FITS = {"name": "NodeResourcesFit", "args": {"scoringStrategy": STRATEGY}}
MOST_ALLOCATED: Object = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [FITS]}],
}


@dataclass(frozen=True)
class Scenario:
    name: str  # on the command line
    about: str  # what it is, in a line
    policy: Object  # the policy of the program
    pods: int = 600  # how many
    half: bool = True  # whether they are placed on half of the nodes, and the other half is opened then
    spread: float = 1.0  # how uneven what pods use is; see `make_load`
    cycles: int = 6  # how many, unless configured otherwise
    varies: float = 0.0  # by which share what pods use varies from cycle to cycle
    zones: bool = False  # whether there are zones, and pods that wish something of them; see `zones`
    # Whether they begin on nodes drawn at random, which no scheduler has chosen; see `scattered`.
    scattered: bool = False
    scheduler: Object | None = None  # the scheduler's KubeSchedulerConfiguration; None for its defaults


OPEN = {"pods": 900, "half": False}
FEW = {"pods": 300, "half": False, "cycles": 3}
SCENARIOS = {
    each.name: each
    for each in (
        Scenario("half", "15 hot nodes, 15 empty ones, targets of 55 %", HALF),
        Scenario("deviation", "the same, 10 points around the mean", DEVIATION),
        Scenario(
            "open",
            "all nodes open from the start: even by requests, uneven by load; 10 points around the mean",
            DEVIATION,
            **OPEN,
        ),
        Scenario("varying", "as half, what pods use varying by 10 % from cycle to cycle", HALF, cycles=10, varies=0.1),
        Scenario("hot", "all nodes open, their load 85 % of what the targets allow together", HOT, **OPEN),
        Scenario(
            "zones",
            "as open, in three zones: pods spread over them, are tied to one by a volume, or prefer one",
            DEVIATION,
            zones=True,
            **OPEN,
        ),
        Scenario(
            "balanced",
            "even by requests and by load; 10 points around the mean",
            DEVIATION,
            half=False,
            spread=0.0,
            cycles=3,
        ),
        Scenario(
            "pack",
            "300 pods on 30 nodes, even by requests: nodes are emptied for an autoscaler",
            _pack(20, steering={}),
            **FEW,
        ),
        Scenario(
            "pack-usage",
            "300 pods on any of 30 nodes: half of these are emptied, by real usage",
            _pack(21, USAGE, args=BY_USAGE, steering={}),
            scattered=True,
            **FEW,
        ),
        Scenario(
            "pack-most",
            "the same, by requests, with a scheduler that packs (MostAllocated)",
            _pack(13),
            scattered=True,
            scheduler=MOST_ALLOCATED,
            **FEW,
        ),
    )
}
