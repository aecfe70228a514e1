"""Rules between the fields of a v1alpha2 policy (framework.md 2.6), and what has no effect in it (2.3, 2.5)."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from rebalancer.args import Plugin
from rebalancer.model.selectors import LabelSelector, parse_selector_text
from rebalancer.policy.document import Node
from rebalancer.policy.findings import Findings, Place
from rebalancer.policy.suggest import did_you_mean
from rebalancer.policy.v1alpha2 import EVICTOR, POINTS, MetricsProvider, Prometheus, WirePolicy

_SOURCES = ("KubernetesMetrics", "Prometheus")
_NO_SOURCE = f"source is missing: {' or '.join(_SOURCES)}"
_UNUSED_POINTS = ("presort", "sort")


def at(node: Node, *steps: str | int) -> Node:
    """Return the node at these steps, or the nearest one above it."""
    for step in steps:
        children = node.items()
        if isinstance(step, str):
            node = node.entries().get(step, node)
        elif step < len(children):
            node = children[step]
    return node


def items(node: Node, key: str) -> tuple[Node, ...]:
    """Return the items of the list under this key; none where it is absent or no list."""
    found = node.at(key)
    return found.items() if found else ()


def check_fields(wire: WirePolicy, node: Node, findings: Findings) -> LabelSelector:
    """Check the single fields at the top, and return the node selector."""
    if wire.grace_period_seconds is not None and wire.grace_period_seconds < 0:
        findings.error(at(node, "gracePeriodSeconds").place, "must be 0 (at once) or more; absent leaves it to the pod")
    try:
        return parse_selector_text(wire.node_selector)
    except ValueError as error:
        findings.error(at(node, "nodeSelector").place, str(error))
        return LabelSelector()


def check_providers(wire: WirePolicy, node: Node, findings: Findings) -> None:
    """Check the sources of usage."""
    seen: set[str] = set()
    for index, provider in enumerate(wire.metrics_providers):
        part = at(node, "metricsProviders", index)
        place = at(part, "source").place
        if provider.source not in _SOURCES:
            hint = did_you_mean(provider.source, _SOURCES)
            wrong = f"{provider.source!r} is no source of metrics{hint}" if provider.source else _NO_SOURCE
            findings.error(place, wrong)
        elif provider.source in seen:
            findings.error(place, f"{provider.source} is given twice; each source counts once")
        seen.add(provider.source)
        if provider.source == "KubernetesMetrics" and wire.metrics_collector.enabled:
            message = "KubernetesMetrics and metricsCollector are the same source: leave metricsCollector out"
            findings.error(place, message)
        _check_prometheus(provider, part, findings)


def _check_prometheus(provider: MetricsProvider, node: Node, findings: Findings) -> None:
    part = at(node, "prometheus")
    if provider.source != "Prometheus":
        if provider.prometheus is not None:
            findings.ignored(part.place, "only the source Prometheus makes use of this")
    elif provider.prometheus is None:
        findings.error(part.place, "the source Prometheus needs a block `prometheus` with its url")
    else:
        _check_url(provider.prometheus.url, at(part, "url").place, findings)
        _check_token(provider.prometheus, part, findings)


def _check_url(url: str, place: Place, findings: Findings) -> None:
    if not url:
        findings.error(place, "url is missing: where Prometheus answers, like http://prometheus.monitoring:9090")
        return
    try:
        parts = urlsplit(url)
        _ = parts.port  # this is where a bad port is noticed
    except ValueError as error:
        findings.error(place, f"{url!r} is no URL: {error}")
        return
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # The reference takes it, and fails in every cycle.
        findings.ignored(place, f"{url!r} can never answer: a URL begins with http:// or https:// and a host")


def _check_token(prometheus: Prometheus, node: Node, findings: Findings) -> None:
    if prometheus.auth_token is None:
        return
    token = at(node, "authToken")
    secret = prometheus.auth_token.secret_reference
    if secret is None:
        findings.error(token.place, "secretReference is missing: namespace and name of a Secret")
    elif not (secret.namespace and secret.name):
        findings.error(at(token, "secretReference").place, "a Secret needs both namespace and name")


def check_effect(node: Node, findings: Findings) -> None:
    """Note what the reference reads and then ignores: `disabled`, `presort`, `sort`, a second `pluginConfig`."""
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
        findings.ignored(plugins.place, f"{point} is ignored: each strategy has its own order")
    if items(plugins, "disabled"):
        message = "disabled is ignored: what is not listed under enabled does not run"
        findings.ignored(at(plugins, "disabled").place, f"{message}; DefaultEvictor always does")


def check_enabled(node: Node, plugins: Mapping[str, Plugin], findings: Findings) -> None:
    """Check that what is enabled can be built: it exists, belongs there, and has its entry in `pluginConfig`."""
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


def _name(entry: Node) -> str:
    """Return the name in a `pluginConfig` entry; empty where there is none that could be one."""
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
