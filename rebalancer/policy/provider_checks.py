"""Rules for the sources of real usage (framework.md 2.6, and rules for our own keys)."""

from urllib.parse import urlsplit

from rebalancer.policy.document import Node
from rebalancer.policy.findings import Findings, Place
from rebalancer.policy.paths import at
from rebalancer.policy.providers import MetricsProvider, Prometheus
from rebalancer.policy.suggest import did_you_mean
from rebalancer.policy.usage import KUBERNETES_METRICS, LOAD_WATCHER, PROMETHEUS
from rebalancer.policy.v1alpha2 import WirePolicy
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address, shown

_SOURCES = (KUBERNETES_METRICS, PROMETHEUS, LOAD_WATCHER)
_NO_SOURCE = f"source is missing: {', '.join(_SOURCES[:-1])} or {_SOURCES[-1]}"
#: For each source the key of its block, and what to write there.
_BLOCKS = {
    PROMETHEUS: ("prometheus", "where Prometheus answers, like http://prometheus.monitoring:9090"),
    LOAD_WATCHER: ("loadWatcher", "where load-watcher answers, like http://load-watcher.kube-system:2020"),
}


def check_providers(wire: WirePolicy, node: Node, findings: Findings) -> None:
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


def _check_blocks(provider: MetricsProvider, node: Node, findings: Findings) -> None:
    blocks = {PROMETHEUS: provider.prometheus, LOAD_WATCHER: provider.load_watcher}
    for source, block in blocks.items():
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
        if _is_url(url):
            # The descheduler accepts it, and then fails in every cycle.
            message = f"{shown(url)!r} can never answer: a URL begins with http:// or https:// and a host"
            findings.ignored(place, message)
        else:
            findings.error(place, f"{shown(url)!r} is not a URL")


def _is_url(url: str) -> bool:
    """Return whether Go's `url.Parse` takes it, as the descheduler asks."""
    try:
        _ = urlsplit(url.strip()).port
    except ValueError:
        return False
    return True


def _check_credentials(prometheus: Prometheus, node: Node, findings: Findings) -> None:
    _check_token(prometheus, node, findings)
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


def _check_token(prometheus: Prometheus, node: Node, findings: Findings) -> None:
    if prometheus.auth_token is None:
        return
    token = at(node, "authToken")
    secret = prometheus.auth_token.secret_reference
    if secret is None:
        findings.error(token.place, "secretReference is missing: namespace and name of a Secret")
    elif not (secret.namespace and secret.name):
        findings.error(at(token, "secretReference").place, "a Secret needs both namespace and name")
