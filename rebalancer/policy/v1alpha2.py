"""The wire form `descheduler/v1alpha2` (framework.md 2.4, 2.5): shapes and types, no rules between fields.

A value that is null counts as absent, as it does in the descheduler.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field

from rebalancer.policy.arguments import Int, Part
from rebalancer.policy.providers import MetricsProvider
from rebalancer.policy.steering import Hold, Steering
from rebalancer.policy.trust import Most, Trust
from rebalancer.policy.windows import Freeze, Window

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
EVICTOR = "DefaultEvictor"
POINTS = ("deschedule", "balance", "filter", "preEvictionFilter")


def _word(value: object) -> object:
    return "" if value is None else value


Word = Annotated[str, BeforeValidator(_word)]
"""Text; null is the empty text."""

Words = Annotated[tuple[Word, ...], Field(strict=False)]


Windows = Annotated[tuple[Window, ...], Field(strict=False)]
Freezes = Annotated[tuple[Freeze, ...], Field(strict=False)]


class MetricsCollector(Part):
    """The deprecated switch for usage from metrics-server; a provider KubernetesMetrics replaces it."""

    enabled: bool = Field(False, description="Collect usage from metrics-server.")


class PluginSet(Part):
    """The plugins of one extension point."""

    enabled: Words = Field((), description="Names, in the order in which they run.")
    disabled: Words = Field((), description="Ignored.")


class ExtensionPoints(Part):
    """Which plugins run where."""

    deschedule: PluginSet = Field(PluginSet(), description="Strategies of the first pass.")
    balance: PluginSet = Field(PluginSet(), description="Strategies of the second pass.")
    filter: PluginSet = Field(PluginSet(), description="DefaultEvictor, always.")
    pre_eviction_filter: PluginSet = Field(PluginSet(), description="DefaultEvictor, always.")
    preevictionfilter: PluginSet = Field(PluginSet(), description="The descheduler's spelling of preEvictionFilter.")
    presort: PluginSet = Field(PluginSet(), description="Ignored.")
    sort: PluginSet = Field(PluginSet(), description="Ignored.")


class PluginConfig(Part):
    """The arguments of one plugin in one profile."""

    name: str = Field("", description="Name of the plugin.")
    args: dict[str, object] | None = Field(None, description="Its arguments.")


class WireProfile(Part):
    """A named set of plugins and their arguments."""

    name: str = Field("", description="A label for reports.")
    plugin_config: Annotated[tuple[PluginConfig, ...], Field(strict=False)] = Field(
        (), description="Arguments, once for each plugin; an enabled strategy needs an entry."
    )
    plugins: ExtensionPoints = Field(ExtensionPoints(), description="Which plugins run where.")
    windows: Windows = Field((), description="When this profile may move pods; absent: always.")
    freeze: Freezes = Field((), description="When it may not.")


class WirePolicy(Part):
    """A DeschedulerPolicy: which pods may move, why, and how many."""

    api_version: str = Field(API_VERSION, description="descheduler/v1alpha2")
    kind: str = Field(KIND, description="DeschedulerPolicy")
    profiles: Annotated[tuple[WireProfile, ...], Field(strict=False)] = Field((), description="Run in this order.")
    node_selector: str = Field("", description="Label selector of the nodes to work on: a=b,c in (d,e),!f")
    max_no_of_pods_to_evict_per_node: Most | None = Field(
        None, description="Most evictions from one node; a number, or a part of its pods like 10%."
    )
    max_no_of_pods_to_evict_per_namespace: Most | None = Field(
        None, description="Most evictions from one namespace, likewise."
    )
    max_no_of_pods_to_evict_total: Most | None = Field(None, description="Most evictions of a whole cycle, likewise.")
    grace_period_seconds: Int | None = Field(None, description="For every eviction; absent: the pod's own; 0: at once.")
    eviction_failure_event_notification: bool = Field(
        False, description="Write an Event when an eviction is refused or fails."
    )
    metrics_collector: MetricsCollector = Field(MetricsCollector(), description="Deprecated.")
    metrics_providers: Annotated[tuple[MetricsProvider, ...], Field(strict=False)] = Field(
        (), description="Where real usage comes from."
    )
    steering: Steering | None = Field(
        None, description="Steer replacements by soft taints; absent: no node is changed."
    )
    appetite: Annotated[Int, Field(ge=1, le=5)] | None = Field(
        None, description="How much to move, 1 (only what breaks rules) to 5; fills in what the policy leaves open."
    )
    trust: Trust | None = Field(None, description="Memory, patience and breaker; absent: on with selection: relief.")
    windows: Windows = Field((), description="When pods may be moved; absent: always.")
    freeze: Freezes = Field((), description="When none may be moved, whatever the windows say.")
    hold: Hold | None = Field(
        None,
        description="How long nodes that selection: compaction has emptied carry a soft taint, like 15m; absent: none.",
    )
