"""The form `descheduler/v1alpha2` (framework.md 2.4, 2.5): shapes and types, no rules between fields.

A value that is null counts as absent, as it does in the descheduler.  For editors that complete and check while one
types there is the JSON schema.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, json_schema
from pydantic_core import PydanticKnownError

from rebalancer.cluster.selectors import EVERYTHING, LabelSelector, parse_selector_text
from rebalancer.policy.arguments import Args, Count, Int, Part, Plugin, duration_text
from rebalancer.policy.moving import Hold, Most, Steering, Trust
from rebalancer.policy.usage import MetricsProvider
from rebalancer.policy.windows import Freeze, Schedule, Window

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
EVICTOR = "DefaultEvictor"
POINTS = ("deschedule", "balance", "filter", "preEvictionFilter")


Word = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""Text; null is the empty text."""

Words = Annotated[tuple[Word, ...], Field(strict=False)]


Windows = Annotated[tuple[Window, ...], Field(strict=False)]
Freezes = Annotated[tuple[Freeze, ...], Field(strict=False)]


def _selector(value: object) -> LabelSelector:
    if not isinstance(value, str):
        raise PydanticKnownError("string_type")
    return parse_selector_text(value)


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

    @property
    def deschedule(self) -> tuple[str, ...]:
        """Strategies of the first pass, in order; one that is named twice runs twice."""
        return self.plugins.deschedule.enabled

    @property
    def balance(self) -> tuple[str, ...]:
        """The same for the second pass."""
        return self.plugins.balance.enabled

    @property
    def schedule(self) -> Schedule:
        """When the profile may move pods."""
        return Schedule(self.windows, self.freeze)


class WirePolicy(Part):
    """A DeschedulerPolicy: which pods may move, why, and how many."""

    api_version: str = Field(API_VERSION, description="descheduler/v1alpha2")
    kind: str = Field(KIND, description="DeschedulerPolicy")
    profiles: Annotated[tuple[WireProfile, ...], Field(strict=False)] = Field((), description="Run in this order.")
    node_selector: Annotated[LabelSelector, BeforeValidator(_selector, json_schema_input_type=str)] = Field(
        EVERYTHING,
        description="Label selector of the nodes to work on: a=b,c in (d,e),!f",
        json_schema_extra={"default": ""},
    )
    max_per_node: Most | None = Field(
        None,
        alias="maxNoOfPodsToEvictPerNode",
        description="Most evictions from one node; a number, or a part of its pods like 10%.",
    )
    max_per_namespace: Most | None = Field(
        None, alias="maxNoOfPodsToEvictPerNamespace", description="Most evictions from one namespace, likewise."
    )
    max_total: Most | None = Field(
        None, alias="maxNoOfPodsToEvictTotal", description="Most evictions of a whole cycle, likewise."
    )
    grace_period_seconds: Count | None = Field(
        None, description="For every eviction; absent: the pod's own; 0: at once."
    )
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

    @property
    def schedule(self) -> Schedule:
        """When pods may be moved."""
        return Schedule(self.windows, self.freeze)


#: pydantic keeps its own names for the bounds of a number if a validator runs before them.
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(json_schema.GenerateJsonSchema):
    """Silently leaves out defaults that JSON cannot hold, such as a parsed selector."""

    ignored_warning_kinds: set[json_schema.JsonSchemaWarningKind] = {  # noqa: RUF012  pydantic's name and type
        "skipped-choice",
        "non-serializable-default",
    }

    def encode_default(self, dft: Any) -> Any:
        """Return a default as a policy spells it: durations like 20m."""
        return duration_text(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def policy_schema(plugins: Mapping[str, Plugin]) -> dict[str, object]:
    """Return the JSON schema (2020-12) of a v1alpha2 policy, with the arguments of these plugins."""
    models: list[type[Args]] = [WirePolicy, *(plugin.args for plugin in plugins.values())]
    mode: json_schema.JsonSchemaMode = "validation"
    references, combined = json_schema.models_json_schema(
        [(model, mode) for model in dict.fromkeys(models)], schema_generator=_Generator
    )
    definitions = {name: _bounded(each) for name, each in combined["$defs"].items()}
    definitions["PluginConfig"] |= _of_each_plugin(
        {name: references[plugin.args, mode] for name, plugin in plugins.items()}
    )
    definitions["ExtensionPoints"]["properties"] |= _points(plugins)
    policy = definitions.pop("WirePolicy")
    policy["properties"] |= {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}}
    return {
        "$schema": _DIALECT,
        "title": f"{KIND} {API_VERSION}",
        **{key: value for key, value in policy.items() if key != "title"},
        "required": ["apiVersion"],
        "$defs": definitions,
    }


def _bounded(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bounded(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    named = {_BOUNDS.get(key, key) if isinstance(each, int | float) else key: each for key, each in schema.items()}
    return {key: _bounded(each) for key, each in named.items()}


def _of_each_plugin(arguments: Mapping[str, json_schema.JsonSchemaValue]) -> dict[str, object]:
    cases = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"args": {"anyOf": [reference, {"type": "null"}]}}},
        }
        for name, reference in arguments.items()
    ]
    properties = {
        "name": {"enum": list(arguments), "description": "Name of the plugin."},
        "args": {"type": ["object", "null"], "description": "Its arguments."},
    }
    return {"properties": properties, "required": ["name"], "allOf": cases}


def _points(plugins: Mapping[str, Plugin]) -> dict[str, object]:
    def names(point: str) -> dict[str, object]:
        enum = [name for name, plugin in plugins.items() if point in plugin.points]
        listed = {"type": "array", "items": {"enum": enum}}
        return {"type": "object", "properties": {"enabled": listed}, "additionalProperties": False}

    points = {point: names(point) for point in POINTS}
    return {**points, "preevictionfilter": points["preEvictionFilter"]}
