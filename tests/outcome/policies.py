"""What a policy aims at, and the same policy in the descheduler's words."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

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
    """Return the arguments of the first plugin with one of these names."""
    entries = [entry for profile in policy["profiles"] for entry in profile["pluginConfig"]]
    found: Object = next(entry["args"] for entry in entries if entry["name"] in names)
    return found
