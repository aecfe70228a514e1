"""Trimaran's plugins: their arguments, and how they are made.

Source: the documentation of Trimaran in kubernetes-sigs/scheduler-plugins.  Values that make no sense (a target of 0, a
negative margin) stand for the default, as they do there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import msgspec

from rebalancer.cluster.loads import METRICS_SERVER, LoadsWanted, NodeLoads
from rebalancer.cluster.quantity import parse_milli_quantity
from rebalancer.scheduling.simulator.configuration import Configuration, ConfigurationError, ProfileConfig, enabled
from rebalancer.scheduling.simulator.conversion import Args, converted
from rebalancer.scheduling.simulator.loads import Loads, loads_of
from rebalancer.scheduling.simulator.plugin import Score
from rebalancer.scheduling.simulator.plugins.load_variation_risk_balancing import (
    LoadVariationRiskBalancing,
    Variation,
)
from rebalancer.scheduling.simulator.plugins.target_load_packing import Target, TargetLoadPacking
from rebalancer.scheduling.simulator.state import State

LOAD_WATCHER = "LoadWatcher"
_WHOLE = 100

#: Returns the usage of nodes from that source; raises StrategyError where there is none.
AskLoads = Callable[[LoadsWanted], NodeLoads]


@dataclass(frozen=True, slots=True)
class Trimaran:
    """Makes the plugins of all profiles.

    Attributes:
        state: the cluster.
        target: of TargetLoadPacking.
        ask: returns real usage; None where nobody measures.
    """

    state: State
    target: Target
    ask: AskLoads | None = None

    def makers(self, config: ProfileConfig) -> Mapping[str, Callable[[], Score]]:
        """Return what makes each plugin of a profile; it raises ConfigurationError for arguments it cannot read."""
        packing_name, balancing_name = TargetLoadPacking.name, LoadVariationRiskBalancing.name
        return {
            packing_name: lambda: TargetLoadPacking(self.state, self._loads(packing_name, config), self.target),
            balancing_name: lambda: LoadVariationRiskBalancing(
                self.state, self._loads(balancing_name, config), variation(config.args(balancing_name))
            ),
        }

    def _loads(self, plugin: str, config: ProfileConfig) -> Loads:
        wanted = loads_wanted(plugin, config.args(plugin))
        return loads_of(plugin, partial(self.ask, wanted) if self.ask else None)


class _Provider(msgspec.Struct):
    type: str = ""


class _Trimaran(msgspec.Struct, rename="camel"):
    watcher_address: str = ""
    metric_provider: _Provider = msgspec.field(default_factory=_Provider)


def loads_wanted(plugin: str, args: Args) -> LoadsWanted:
    """Return whom the plugin asks for usage."""
    wire = converted(plugin, args, _Trimaran)
    return LoadsWanted(LOAD_WATCHER if wire.watcher_address else wire.metric_provider.type or METRICS_SERVER)


class _Packing(_Trimaran, rename="camel"):
    target_utilization: int = 0
    default_requests: Mapping[str, str | float] | None = None
    default_requests_multiplier: str = "1.5"


def packing(args: Args) -> Target:
    """Return the target of TargetLoadPacking.

    Raises:
        ConfigurationError: an argument has no value that can be used.
    """
    wire = converted(TargetLoadPacking.name, args, _Packing)
    if wire.target_utilization > _WHOLE:
        raise ConfigurationError(f"{TargetLoadPacking.name}: targetUtilization is a percentage, at most 100")
    target = Target(multiplier=_multiplier(wire.default_requests_multiplier))
    if wire.target_utilization > 0:
        target = replace(target, utilization=wire.target_utilization)
    if wire.default_requests is None:
        return target
    return replace(target, assumed=parse_milli_quantity(wire.default_requests.get("cpu", 0)))


def _multiplier(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < inf:
        raise ConfigurationError(f"{TargetLoadPacking.name}: defaultRequestsMultiplier {text!r} is not a usable number")
    return number


def shared_target(configuration: Configuration) -> Target:
    """Return the target that counts in all profiles: the plugin keeps one, that of the last profile that enables it.

    Raises:
        ConfigurationError: an argument has no value that can be used.
    """
    name = TargetLoadPacking.name
    having = [each for each in configuration.profiles if name in enabled(each, "score")]
    return packing(having[-1].args(name)) if having else Target()


class _Variation(_Trimaran, rename="camel"):
    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0


def variation(args: Args) -> Variation:
    """Return the margin and the sensitivity of LoadVariationRiskBalancing."""
    wire = converted(LoadVariationRiskBalancing.name, args, _Variation)
    margin, sensitivity = wire.safe_variance_margin, wire.safe_variance_sensitivity
    return Variation(1.0 if margin < 0 else margin, 1.0 if sensitivity < 0 else sensitivity)
