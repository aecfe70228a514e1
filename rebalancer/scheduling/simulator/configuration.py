"""A KubeSchedulerConfiguration (v1): the parts that decide where pods go.

Source: the Kubernetes documentation, Scheduler Configuration and kube-scheduler Configuration (v1).
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from rebalancer.cluster.pod import Int32

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER = "default-scheduler"
_ALL = "*"

#: The plugins of a profile that says nothing, in order, with their weights.
DEFAULT_PLUGINS: Mapping[str, int] = {
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}

#: Plugins that run only if a configuration enables them.
OTHER_PLUGINS = ("TargetLoadPacking", "LoadVariationRiskBalancing", "PodCapacityOfNode")

#: Plugins that neither refuse nor score nodes, at least for pods whose answer is known.  The last four limit disks that
#: CSI drivers have taken over, up to 1.30, so that they refuse nothing any more.
_ELSEWHERE = (
    *("SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder", "DynamicResources", "GangScheduling"),
    *("NodeDeclaredFeatures", "EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits"),
)


class SchedulerPlugin(msgspec.Struct, frozen=True):
    """A plugin by name; where it is enabled by name, a weight of 0 means 1."""

    name: str = ""
    weight: Int32 = 0


class SchedulerPluginSet(msgspec.Struct, frozen=True):
    """What is turned on and off at one point; `*` turns all off."""

    enabled: tuple[SchedulerPlugin, ...] = ()
    disabled: tuple[SchedulerPlugin, ...] = ()


class Plugins(msgspec.Struct, frozen=True, rename={"pre_filter": "preFilter", "multi_point": "multiPoint"}):
    """The extension points that decide where pods go."""

    filter: SchedulerPluginSet = SchedulerPluginSet()
    pre_filter: SchedulerPluginSet = SchedulerPluginSet()
    score: SchedulerPluginSet = SchedulerPluginSet()
    multi_point: SchedulerPluginSet = SchedulerPluginSet()


class SchedulerPluginConfig(msgspec.Struct, frozen=True):
    """A plugin's arguments."""

    name: str = ""
    args: dict[str, Any] = {}


class ProfileConfig(msgspec.Struct, frozen=True, rename="camel"):
    """A profile as it is written."""

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: Plugins = Plugins()
    plugin_config: tuple[SchedulerPluginConfig, ...] = ()
    percentage_of_nodes_to_score: int | None = None

    def args(self, plugin: str) -> Mapping[str, Any]:
        """Return a plugin's arguments, empty where none are given."""
        return next((each.args for each in self.plugin_config if each.name == plugin), {})


class Extender(msgspec.Struct, frozen=True, rename="camel"):
    """A webhook that refuses or scores nodes; what it does is not known."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""


class Configuration(msgspec.Struct, frozen=True, rename="camel"):
    """The whole file."""

    api_version: str = ""
    kind: str = ""
    profiles: tuple[ProfileConfig, ...] = (ProfileConfig(),)
    percentage_of_nodes_to_score: int | None = None
    extenders: tuple[Extender, ...] = ()


class ConfigurationError(Exception):
    """The document is not a configuration that can be used; the message says why and what helps."""


def read_configuration(document: object) -> Configuration:
    """Read a configuration from a decoded document.

    Raises:
        ConfigurationError: it is of another kind or version, or a field has the wrong type.
    """
    try:
        found = msgspec.convert(document, Configuration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"not a {KIND} that can be read: {error}") from None
    if (found.kind, found.api_version) != (KIND, API_VERSION):
        raise ConfigurationError(
            f"expected kind {KIND} of {API_VERSION}, found {found.kind or 'none'} of {found.api_version or 'none'}"
        )
    names = [profile.scheduler_name for profile in found.profiles]
    if len(set(names)) < len(names):
        raise ConfigurationError("two profiles have the same schedulerName: give each a name of its own")
    return found if found.profiles else msgspec.structs.replace(found, profiles=(ProfileConfig(),))


def enabled(profile: ProfileConfig, point: str) -> dict[str, int]:
    """Return the plugins that a profile has at `filter` or `score`, in order, with their weights.

    The point's own lists override `multiPoint`, and `multiPoint` overrides the defaults.
    """
    return _merged(_merged(DEFAULT_PLUGINS, profile.plugins.multi_point), getattr(profile.plugins, point))


def _merged(defaults: Mapping[str, int], changes: SchedulerPluginSet) -> dict[str, int]:
    off = {each.name for each in changes.disabled}
    kept = {} if _ALL in off else {name: weight for name, weight in defaults.items() if name not in off}
    return {**kept, **{each.name: each.weight or 1 for each in changes.enabled}}


def unknown_plugins(profile: ProfileConfig) -> list[str]:
    """Return the plugins of a profile that the simulator does not know."""
    named = {*enabled(profile, "filter"), *enabled(profile, "score")}
    return sorted(named.difference(DEFAULT_PLUGINS, OTHER_PLUGINS, _ELSEWHERE))


T = TypeVar("T")


def converted(plugin: str, args: Mapping[str, Any], kind: type[T]) -> T:
    """Return a plugin's arguments; raise ConfigurationError if a field has the wrong type or an unusable value."""
    try:
        return msgspec.convert(args, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{plugin}: {error}") from None
