"""Rules between the fields of a v1alpha2 policy (framework.md 2.6), and fields that have no effect (2.3, 2.5)."""

from collections.abc import Iterator, Mapping

from rebalancer.cluster.selectors import LabelSelector, parse_selector_text
from rebalancer.policy.arguments import Plugin
from rebalancer.policy.document import Node
from rebalancer.policy.findings import Findings, Place
from rebalancer.policy.paths import at, items
from rebalancer.policy.suggest import did_you_mean
from rebalancer.policy.v1alpha2 import EVICTOR, POINTS, WirePolicy

_UNUSED_POINTS = ("presort", "sort")


def check_fields(wire: WirePolicy, node: Node, findings: Findings) -> LabelSelector:
    """Check the grace period and the node selector, and return the latter."""
    if wire.grace_period_seconds is not None and wire.grace_period_seconds < 0:
        findings.error(at(node, "gracePeriodSeconds").place, "must be 0 (at once) or more; absent leaves it to the pod")
    try:
        return parse_selector_text(wire.node_selector)
    except ValueError as error:
        findings.error(at(node, "nodeSelector").place, str(error))
        return LabelSelector()


def check_effect(node: Node, findings: Findings) -> None:
    """Note what the descheduler reads and then ignores: `disabled`, `presort`, `sort`, a second `pluginConfig`."""
    for profile in items(node, "profiles"):
        seen: set[str] = set()
        for entry in items(profile, "pluginConfig"):
            name = _name(entry)
            if name in seen:
                findings.ignored(entry.place, f"{name} is configured twice in this profile; the first one counts")
            if name:
                seen.add(name)
        for point, plugins in profile.entries().get("plugins", profile).entries().items():
            _check_point_effect(point, plugins, findings)


def _check_point_effect(point: str, plugins: Node, findings: Findings) -> None:
    if point in _UNUSED_POINTS and items(plugins, "enabled"):
        findings.ignored(plugins.place, f"{point} has no effect: each strategy has its own order")
    if items(plugins, "disabled"):
        message = "disabled has no effect: what is not listed under enabled does not run"
        findings.ignored(at(plugins, "disabled").place, f"{message}; DefaultEvictor always does")


def check_enabled(node: Node, plugins: Mapping[str, Plugin], findings: Findings) -> None:
    """Check that each enabled plugin exists, belongs to that extension point, and has an entry in `pluginConfig`."""
    for profile in items(node, "profiles"):
        configured = {_name(entry) for entry in items(profile, "pluginConfig")}
        for point, name, place in _enabled(profile):
            plugin = plugins.get(name)
            if plugin is None:
                findings.error(place, f"no plugin is called {name!r}{did_you_mean(name, _names_at(point, plugins))}")
            elif point not in plugin.points:
                points = " or ".join(sorted(plugin.points))
                findings.error(place, f"{name} cannot be enabled under {point}: it belongs under {points}")
            elif name != EVICTOR and name not in configured:
                findings.error(place, f"{name} has no entry in this profile's pluginConfig; add `- name: {name}` there")


def check_configured(node: Node, plugins: Mapping[str, Plugin], findings: Findings) -> None:
    """Note strategies that have arguments but are enabled nowhere in their profile: they do not run."""
    for profile in items(node, "profiles"):
        enabled = {name for _, name, _ in _enabled(profile)}
        for entry in items(profile, "pluginConfig"):
            name = _name(entry)
            if name in plugins and name not in enabled and name != EVICTOR:
                points = " or ".join(sorted(plugins[name].points))
                findings.notice(
                    entry.place,
                    f"{name} is configured but not enabled, so it does not run;"
                    f" list it under plugins.{points}.enabled if it should",
                )


def _name(entry: Node) -> str:
    """Return the name in a `pluginConfig` entry; empty if it is missing or not a text."""
    name = entry.at("name")
    return name.value if name and isinstance(name.value, str) else ""


def _names_at(point: str, plugins: Mapping[str, Plugin]) -> Iterator[str]:
    return (name for name, plugin in plugins.items() if point in plugin.points)


def _enabled(profile: Node) -> Iterator[tuple[str, str, Place]]:
    for key, point in (*((each, each) for each in POINTS), ("preevictionfilter", "preEvictionFilter")):
        names = profile.at("plugins", key, "enabled")
        for name in names.items() if names else ():
            if isinstance(name.value, str) or name.value is None:
                yield point, name.value or "", name.place
