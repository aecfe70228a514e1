"""Rules between the fields of a v1alpha2 policy (framework.md 2.6), and fields that have no effect (2.3, 2.5)."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.policy.arguments import Plugin
from rebalancer.policy.document import DocumentNode, at, items
from rebalancer.policy.findings import Findings, Place, did_you_mean
from rebalancer.policy.usage import (
    KUBERNETES_METRICS,
    LOAD_WATCHER,
    PROMETHEUS,
    MetricsProvider,
    Prometheus,
    UtilizationArgs,
)
from rebalancer.policy.v1alpha2 import EVICTOR, POINTS, WirePolicy
from rebalancer.policy.values import Policy
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address, shown

_SOURCES = (KUBERNETES_METRICS, PROMETHEUS, LOAD_WATCHER)
_NO_SOURCE = f"source is missing: {', '.join(_SOURCES[:-1])} or {_SOURCES[-1]}"
#: For each source the key of its block, and what to write there.
_BLOCKS = {
    PROMETHEUS: ("prometheus", "where Prometheus answers, like http://prometheus.monitoring:9090"),
    LOAD_WATCHER: ("loadWatcher", "where load-watcher answers, like http://load-watcher.loadwatcher:2020"),
}


def check_providers(wire: WirePolicy, node: DocumentNode, findings: Findings) -> None:
    """Check the sources of usage."""
    seen: set[str] = set()
    for index, provider in enumerate(wire.metrics_providers):
        part = at(node, "metricsProviders", index)
        place = at(part, "source").place
        if provider.source not in _SOURCES:
            hint = did_you_mean(provider.source, _SOURCES)
            wrong = f"{provider.source!r} is not a source of metrics{hint}" if provider.source else _NO_SOURCE
            findings.error(place, wrong)
        elif provider.source in seen:
            findings.error(place, f"{provider.source} is given twice; each source counts once")
        seen.add(provider.source)
        if provider.source == KUBERNETES_METRICS and wire.metrics_collector.enabled:
            message = "KubernetesMetrics and metricsCollector are the same source: leave metricsCollector out"
            findings.error(place, message)
        _check_blocks(provider, part, findings)


def _check_blocks(provider: MetricsProvider, node: DocumentNode, findings: Findings) -> None:
    for source, block in ((PROMETHEUS, provider.prometheus), (LOAD_WATCHER, provider.load_watcher)):
        key, example = _BLOCKS[source]
        part = at(node, key)
        if provider.source != source:
            if block is not None:
                findings.ignored(part.place, f"only the source {source} makes use of this")
        elif block is None:
            findings.error(part.place, f"the source {source} needs a block `{key}` with its url")
        else:
            _check_url(block.url, at(part, "url").place, example, findings)
    if provider.source == PROMETHEUS and provider.prometheus is not None:
        _check_credentials(provider.prometheus, at(node, "prometheus"), findings)


def _check_url(url: str, place: Place, example: str, findings: Findings) -> None:
    if not url:
        findings.error(place, f"url is missing: {example}")
        return
    try:
        read_address(url)
    except AmbiguousUserinfo as error:
        findings.error(place, str(error))
    except ValueError:
        try:
            _ = urlsplit(url.strip()).port
        except ValueError:  # Go's `url.Parse` refuses it too
            findings.error(place, f"{shown(url)!r} is not a URL")
        else:
            # The descheduler accepts it, and then fails in every cycle.
            message = f"{shown(url)!r} can never answer: a URL begins with http:// or https:// and a host"
            findings.ignored(place, message)


def _check_credentials(prometheus: Prometheus, node: DocumentNode, findings: Findings) -> None:
    if prometheus.auth_token is not None:
        token, secret = at(node, "authToken"), prometheus.auth_token.secret_reference
        if secret is None:
            findings.error(token.place, "secretReference is missing: namespace and name of a Secret")
        elif not (secret.namespace and secret.name):
            findings.error(at(token, "secretReference").place, "a Secret needs both namespace and name")
    basic = prometheus.basic_auth
    if basic is not None and not (basic.username and basic.password_file):
        findings.error(at(node, "basicAuth").place, "basicAuth needs both username and passwordFile")
    given = prometheus.credentials
    if len(given) > 1:
        findings.error(node.place, f"there are {' and '.join(given)}; give one of them")
    elif given and prometheus.url.strip().lower().startswith("http://") and not prometheus.allow_token_over_http:
        findings.notice(
            at(node, given[0]).place,
            "will not be sent over plain http, and strategies that need it will fail: use https, or allowTokenOverHTTP",
        )


def check_effect(node: DocumentNode, findings: Findings) -> None:
    """Note what the descheduler reads and then ignores: `disabled`, `presort`, `sort`, a second `pluginConfig`."""
    for profile in items(node, "profiles"):
        seen: set[str] = set()
        for entry in items(profile, "pluginConfig"):
            name = _name(entry)
            if name and name in seen:
                findings.ignored(entry.place, f"{name} is configured twice in this profile; the first one counts")
            seen.add(name)
        for point, plugins in at(profile, "plugins").entries().items():
            if point in ("presort", "sort") and items(plugins, "enabled"):
                findings.ignored(plugins.place, f"{point} has no effect: each strategy has its own order")
            if items(plugins, "disabled"):
                message = "disabled has no effect: what is not listed under enabled does not run"
                findings.ignored(at(plugins, "disabled").place, f"{message}; DefaultEvictor always does")


def check_enabled(node: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> None:
    """Check that each enabled plugin exists, belongs to that extension point, and has an entry in `pluginConfig`.

    Strategies that have arguments but are enabled nowhere in their profile are noted: they do not run.
    """
    for profile in items(node, "profiles"):
        entries = [(_name(entry), entry.place) for entry in items(profile, "pluginConfig")]
        enabled = list(_enabled(profile))
        for point, name, place in enabled:
            plugin = plugins.get(name)
            if plugin is None:
                here = (each.name for each in plugins.values() if point in each.points)
                findings.error(place, f"no plugin is called {name!r}{did_you_mean(name, here)}")
            elif point not in plugin.points:
                points = " or ".join(sorted(plugin.points))
                findings.error(place, f"{name} cannot be enabled under {point}: it belongs under {points}")
            elif name != EVICTOR and name not in dict(entries):
                findings.error(place, f"{name} has no entry in this profile's pluginConfig; add `- name: {name}` there")
        idle = plugins.keys() - {EVICTOR, *(name for _, name, _ in enabled)}
        for name, place in entries:
            if name in idle:
                points = " or ".join(sorted(plugins[name].points))
                findings.notice(
                    place,
                    f"{name} is configured but not enabled, so it does not run;"
                    f" list it under plugins.{points}.enabled if it should",
                )


def check_sources(policy: Policy, node: DocumentNode, findings: Findings) -> None:
    """Check that the policy sets up the source of usage of each strategy that runs, and that it measures what is named.

    The descheduler finds out in each cycle, and evicts nothing.
    """
    known = {each.source for each in policy.metrics_providers}
    if policy.metrics_collector.enabled:
        known.add(KUBERNETES_METRICS)
    for profile, part in zip(policy.profiles, items(node, "profiles"), strict=False):
        for entry in items(part, "pluginConfig"):
            args, runs = profile.args.get(_name(entry)), (*profile.deschedule, *profile.balance)
            if not isinstance(args, UtilizationArgs) or not args.metrics_utilization or _name(entry) not in runs:
                continue
            source, place = args.metrics_utilization.origin, at(entry, "args", "metricsUtilization").place
            if source not in known:
                cure = f"add `- source: {source}` to the policy's metricsProviders"
                findings.unsafe(place, f"{source} is not set up: {cure}")
            strangers = sorted(args.thresholds.keys() - {CPU, MEMORY, PODS})
            if strangers and source != PROMETHEUS:
                message = f"thresholds name {', '.join(strangers)}, which {source} does not measure"
                findings.unsafe(at(entry, "args", "thresholds").place, f"{message}; Prometheus does, with a query")


def _name(entry: DocumentNode) -> str:
    """Return the name in a `pluginConfig` entry; empty if it is missing or not a text."""
    name = entry.at("name")
    return name.value if name and isinstance(name.value, str) else ""


def _enabled(profile: DocumentNode) -> Iterator[tuple[str, str, Place]]:
    for key, point in (*((each, each) for each in POINTS), ("preevictionfilter", "preEvictionFilter")):
        names = profile.at("plugins", key, "enabled")
        for name in names.items() if names else ():
            if isinstance(name.value, str) or name.value is None:
                yield point, name.value or "", name.place
