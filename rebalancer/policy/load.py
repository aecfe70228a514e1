"""From text to a policy: rules between its fields (framework.md 2.6), and all problems reported together."""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from urllib.parse import urlsplit

import yaml

from rebalancer.cluster.resources import CPU, MEMORY, PODS
from rebalancer.policy import usage, v1alpha1
from rebalancer.policy.arguments import Args, Plugin
from rebalancer.policy.document import DocumentNode, Dumper, WantedDocument, at, items, wanted_document
from rebalancer.policy.findings import Findings, Place, did_you_mean
from rebalancer.policy.v1alpha2 import API_VERSION, EVICTOR, KIND, POINTS, WirePolicy
from rebalancer.policy.validation import read
from rebalancer.policy.values import LoadedPolicy, Policy, PolicyProfile
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address, shown
from rebalancer.untrusted.printable import printable

_SOURCES = (usage.KUBERNETES_METRICS, usage.PROMETHEUS, usage.LOAD_WATCHER)
_NO_SOURCE = f"source is missing: {', '.join(_SOURCES[:-1])} or {_SOURCES[-1]}"
#: For each source the key of its block, and what to write there.
_BLOCKS = {
    usage.PROMETHEUS: ("prometheus", "where Prometheus answers, like http://prometheus.monitoring:9090"),
    usage.LOAD_WATCHER: ("loadWatcher", "where load-watcher answers, like http://load-watcher.loadwatcher:2020"),
}


def _check_providers(wire: WirePolicy, node: DocumentNode, findings: Findings) -> None:
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
        if provider.source == usage.KUBERNETES_METRICS and wire.metrics_collector.enabled:
            message = "KubernetesMetrics and metricsCollector are the same source: leave metricsCollector out"
            findings.error(place, message)
        _check_blocks(provider, part, findings)


def _check_blocks(provider: usage.MetricsProvider, node: DocumentNode, findings: Findings) -> None:
    for source, block in ((usage.PROMETHEUS, provider.prometheus), (usage.LOAD_WATCHER, provider.load_watcher)):
        key, example = _BLOCKS[source]
        part = at(node, key)
        if provider.source != source:
            if block is not None:
                findings.ignored(part.place, f"only the source {source} makes use of this")
        elif block is None:
            findings.error(part.place, f"the source {source} needs a block `{key}` with its url")
        else:
            _check_url(block.url, at(part, "url").place, example, findings)
    if provider.source == usage.PROMETHEUS and provider.prometheus is not None:
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


def _check_credentials(prometheus: usage.Prometheus, node: DocumentNode, findings: Findings) -> None:
    given = prometheus.credentials
    if len(given) > 1:
        findings.error(node.place, f"there are {' and '.join(given)}; give one of them")
    elif given and prometheus.url.strip().lower().startswith("http://") and not prometheus.allow_token_over_http:
        findings.notice(
            at(node, given[0]).place,
            "will not be sent over plain http, and strategies that need it will fail: use https, or allowTokenOverHTTP",
        )


def _check_effect(profile: DocumentNode, findings: Findings) -> None:
    """Note what the descheduler reads and then ignores: `disabled`, `presort`, `sort`, a second `pluginConfig`."""
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


def _check_enabled(profile: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> None:
    entries, enabled = [(_name(each), each.place) for each in items(profile, "pluginConfig")], list(_enabled(profile))
    places = {plugin.name: " or ".join(sorted(plugin.points)) for plugin in plugins.values()}
    for point, name, place in enabled:
        if name not in plugins:
            here = (each.name for each in plugins.values() if point in each.points)
            findings.error(place, f"no plugin is called {name!r}{did_you_mean(name, here)}")
        elif point not in plugins[name].points:
            findings.error(place, f"{name} cannot be enabled under {point}: it belongs under {places[name]}")
        elif name != EVICTOR and name not in dict(entries):
            findings.error(place, f"{name} has no entry in this profile's pluginConfig; add `- name: {name}` there")
    idle = plugins.keys() - {EVICTOR, *(name for _, name, _ in enabled)}
    for name, place in entries:
        if name in idle:
            cure = f"list it under plugins.{places[name]}.enabled if it should"
            findings.notice(place, f"{name} is configured but not enabled, so it does not run; {cure}")


def _check_sources(profile: PolicyProfile, sources: Collection[str], node: DocumentNode, findings: Findings) -> None:
    """Check that the usage by which strategies decide can be measured; the descheduler finds out in each cycle."""
    for entry in items(node, "pluginConfig"):
        args, runs = profile.args.get(_name(entry)), (*profile.deschedule, *profile.balance)
        if not isinstance(args, usage.UtilizationArgs) or not args.metrics_utilization or _name(entry) not in runs:
            continue
        source, place = args.metrics_utilization.origin, at(entry, "args", "metricsUtilization").place
        if source not in sources:
            cure = f"add `- source: {source}` to the policy's metricsProviders"
            findings.unsafe(place, f"{source} is not set up: {cure}")
        strangers = sorted(args.thresholds.keys() - {CPU, MEMORY, PODS})
        if strangers and source != usage.PROMETHEUS:
            message = f"thresholds name {', '.join(strangers)}, which {source} does not measure"
            findings.unsafe(at(entry, "args", "thresholds").place, f"{message}; Prometheus does, with a query")


def _name(entry: DocumentNode) -> str:
    name = entry.at("name")
    return name.value if name and isinstance(name.value, str) else ""


def _enabled(profile: DocumentNode) -> Iterator[tuple[str, str, Place]]:
    for key, point in (*((each, each) for each in POINTS), ("preevictionfilter", "preEvictionFilter")):
        names = profile.at("plugins", key, "enabled")
        for name in names.items() if names else ():
            if isinstance(name.value, str) or name.value is None:
                yield point, name.value or "", name.place


_VERSIONS = (API_VERSION, v1alpha1.API_VERSION)
_WANTED = WantedDocument(KIND, "descheduler/", "policy")
_MINIMAL = f"`apiVersion: {API_VERSION}`, `kind: {KIND}` and `profiles: []`"


def load_policy(
    text: str,
    plugins: Mapping[str, Plugin],
    *,
    source: str,
    strict: bool = False,
    live: bool = False,
    runs: bool = True,
) -> LoadedPolicy:
    """Read a policy: YAML or JSON, `descheduler/v1alpha2` or `descheduler/v1alpha1`.

    Where it is strict, a part that has no effect is an error.  Where evictions follow (`live`) an unknown key is one,
    and so is usage that cannot be measured.  Unless it runs, names under `enabled` may be unknown, at the wrong
    extension point, or without an entry in `pluginConfig`, as in the descheduler (framework.md 2.6).
    """
    findings = Findings()
    node = _versioned(wanted_document(text, findings, _WANTED), plugins, findings)
    policy = _policy(node, plugins, findings)
    parts = items(node, "profiles") if runs else ()
    for part in parts:
        _check_enabled(part, plugins, findings)
    for profile, part in zip(policy.profiles, parts, strict=False):
        _check_sources(profile, policy.sources, part, findings)
        if any(each.name == profile.name and each.schedule != profile.schedule for each in policy.profiles):
            findings.error(part.place, "a profile of the same name has other windows: give each a name of its own")
    if runs and not any(profile.deschedule or profile.balance for profile in policy.profiles):
        findings.notice(node.place, "the policy enables no strategy: it will evict nothing")
    return LoadedPolicy(policy, findings.settle(source, strict=strict, live=live))


def converted_policy(text: str, plugins: Mapping[str, Plugin], *, source: str) -> str:
    """Return a policy of the older form as YAML of the present one; comments say what was left out or is read anew."""
    findings = Findings()
    document = wanted_document(text, findings, _WANTED)
    node = _versioned(document, plugins, findings)
    _policy(node, plugins, findings)
    warnings = findings.settle(source, strict=False, live=True)  # a misspelt limit is not left out
    notes = [str(each) for each in warnings if each.path != "apiVersion"]
    strategies = document.at("strategies")
    for name, each in strategies.entries().items() if strategies else ():
        enabled = each.at("enabled")
        if not (enabled and enabled.value):
            notes.append(f"line {each.place.line}, {each.place.path}: {name} is not enabled and left out")
    comments = [f"# {printable(each)}\n" for each in notes]
    return "".join(comments) + yaml.dump(node.plain(nulls=False), Dumper=Dumper, sort_keys=False)


def _versioned(document: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> DocumentNode:
    """Return the document as v1alpha2, converted if needed; a null if it is not a policy."""
    nothing = DocumentNode(None, document.place)
    if not isinstance(document.value, Mapping):
        wrong = "the policy is empty" if document.value is None else "a policy is a map of keys"
        if document.value is not None or not findings.failed:
            findings.error(document.place, f"{wrong}; a minimal one is {_MINIMAL}")
        return nothing
    if not _names_a_policy(document, findings):
        return nothing
    version = document.at("apiVersion")
    if version.value == v1alpha1.API_VERSION if version else document.at("strategies"):
        return v1alpha1.converted(document, plugins, findings)
    return document


def _names_a_policy(document: DocumentNode, findings: Findings) -> bool:
    """Return whether to read on; a wrong kind or a missing apiVersion is an error, but the rest is checked too."""
    version, kind = document.at("apiVersion"), document.at("kind")
    if kind and kind.value != KIND:
        findings.error(kind.place, f"this is not a policy: its kind should be {KIND}")
    if version is None:
        # The descheduler silently takes such a file as an empty policy.
        first = v1alpha1.API_VERSION if document.at("strategies") else API_VERSION
        findings.error(document.place, f"apiVersion is missing; begin with `apiVersion: {first}`")
    elif version.value not in _VERSIONS:
        given = repr(version.value) if isinstance(version.value, str) else "of this kind"
        hint = did_you_mean(str(version.value), _VERSIONS)
        findings.error(version.place, f"apiVersion {given} is not known{hint}")
        return False
    return True


def _policy(node: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> Policy:
    wire = read(WirePolicy, node, findings, lenient=True) or WirePolicy()
    args = [_arguments(each, plugins, findings) for each in items(node, "profiles")]
    for each in items(node, "profiles"):
        _check_effect(each, findings)
    _check_providers(wire, node, findings)
    profiles = tuple(
        PolicyProfile.model_construct(**dict(each), args=MappingProxyType({EVICTOR: plugins[EVICTOR].args(), **found}))
        for each, found in zip(wire.profiles, args, strict=False)
    )
    return Policy.model_construct(**{**dict(wire), "profiles": profiles})


def _arguments(profile: DocumentNode, plugins: Mapping[str, Plugin], findings: Findings) -> dict[str, Args]:
    """Read every `pluginConfig` entry, enabled or not; if a plugin has two, the first counts."""
    found: dict[str, Args] = {}
    for entry in items(profile, "pluginConfig"):
        name, args = entry.at("name"), entry.at("args") or DocumentNode({}, entry.place.key("args"))
        if name is None:
            findings.error(entry.place, "the name of the plugin is missing")
        elif not isinstance(name.value, str):
            continue  # an error already
        elif name.value not in plugins:
            findings.error(name.place, f"no plugin is called {name.value!r}{did_you_mean(name.value, plugins)}")
        elif isinstance(args.value, Mapping):  # else an error already
            given = read(plugins[name.value].args, args, findings)
            if given is not None:
                found.setdefault(name.value, given)
    return found
