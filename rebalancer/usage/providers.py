"""The sources of usage that a policy sets up, and their answers to strategies.

Nodes without a sample that is fresh and can be believed are left out, or their requests count instead, or the strategy
gives up.  Example with `minFreshNodes: 80` and 10 nodes: if 8 have fresh samples, the two others are left out with a
warning; if only 7 have, the strategy fails.  With `whenMissing: requests` it never fails for this reason: each node
without a sample counts as using what its pods request.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import METRICS_SERVER, LoadsWanted, Measured, NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import Resources
from rebalancer.errors import SourceError, StrategyError
from rebalancer.policy.usage import KUBERNETES_METRICS, LOAD_WATCHER, PROMETHEUS, MetricsUtilization
from rebalancer.policy.values import Policy
from rebalancer.usage import load_watcher, metrics_server, prometheus
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.promql import PromQL, ask_once
from rebalancer.usage.sample_age import Sampled
from rebalancer.usage.session import ReadSecret, credentials

_NOT_SET_UP = "{0} is not set up: add `- source: {0}` to the policy's metricsProviders"


class Providers:
    """The answers of the policy's sources in one cycle; a question is sent when a strategy needs it, and only once."""

    def __init__(
        self,
        policy: Policy,  # sets them up; the deprecated switch turns metrics-server on too
        read_metrics: Callable[[], Metrics],  # reads metrics-server's answer; raises SourceError
        read_secret: ReadSecret,  # reads a token from its Secret; raises SourceError
        *,
        service_account: Path | None,  # the folder with the pod's token and certificates; None outside a pod
        sampled: Sampled = lambda *_: None,  # called with each source that answers, with the time of its oldest sample
        is_ending: Callable[[], bool] = lambda: False,  # returns whether the program is told to end
    ) -> None:
        self._is_ending = is_ending
        self._given = {each.source: each for each in policy.metrics_providers}
        self._sources = policy.sources
        self._read_secret = read_secret
        self._service_account = service_account
        self._sampled = sampled
        self._oldest: dict[str, datetime] = {}
        self._metrics = ask_once(lambda _: read_metrics())
        self._promql = ask_once(self._connect)
        self._load_watcher = ask_once(self._ask_load_watcher)

    def measure(self, cluster: Cluster, wanted: object) -> Measured:
        """Return what nodes and pods use; raises StrategyError if the source has no figures for enough nodes."""
        if isinstance(wanted, LoadsWanted):
            return Measured({}, {}, loads=self._loads(cluster, wanted))
        assert isinstance(wanted, MetricsUtilization)
        try:
            found = self.figures(cluster, wanted)
        except SourceError as error:
            if wanted.when_missing != "requests":
                raise
            found = Measured({}, {}, missing=dict.fromkeys((node.name for node in cluster.nodes), str(error)))
        resources = tuple(wanted.prometheus.nodes) if wanted.prometheus else metrics_server.RESOURCES
        return without_missing_samples(found, wanted, cluster, resources)

    def prometheus(self, now: datetime) -> PromQL:
        """Return the Prometheus for a question about this time, which has its own warnings; raises SourceError."""
        if not self._has(PROMETHEUS):
            raise SourceError(_NOT_SET_UP.format(PROMETHEUS))
        found = self._promql(now)
        found.warnings.clear()
        return found

    def _loads(self, cluster: Cluster, wanted: LoadsWanted) -> NodeLoads:
        """Return the figures that a scheduler goes by: load-watcher's, or those that it would make of its source."""
        if self._has(LOAD_WATCHER):
            return load_watcher.loads(self._load_watcher(None), cluster.now)
        if wanted.source == METRICS_SERVER and self._has(KUBERNETES_METRICS):
            return metrics_server.loads(self._metrics(None), cluster)
        cure = KUBERNETES_METRICS if wanted.source == METRICS_SERVER else LOAD_WATCHER
        raise SourceError(
            f"the scheduler asks {wanted.source}: add `- source: {cure}` to the policy's metricsProviders"
        )

    def _has(self, source: str) -> bool:
        return source in self._sources

    def figures(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        """Return what the source says, whatever is missing; raises StrategyError if it says nothing."""
        if not self._has(wanted.origin):
            raise StrategyError(_NOT_SET_UP.format(wanted.origin))
        match wanted.origin:
            case "KubernetesMetrics":
                found = metrics_server.measured(self._metrics(None), wanted.max_sample_age, cluster)
            case "LoadWatcher":
                found = self._by_load_watcher(cluster, wanted)
            case _:
                found = self._by_prometheus(cluster, wanted)
        self._note(wanted.origin, found.taken)
        # Averages and quantiles of a node and of its pods are not about the same moment, and may differ.
        is_of_one_moment = not found.window and wanted.origin != LOAD_WATCHER
        return without_contradictions(found, cluster) if is_of_one_moment else found

    def _note(self, source: str, taken: datetime | None) -> None:
        """Tell of the oldest sample of a source in this cycle, whenever an older one is found."""
        if taken is not None and (source not in self._oldest or taken < self._oldest[source]):
            self._oldest[source] = taken
            self._sampled(source, taken)

    def _by_prometheus(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        assert wanted.prometheus is not None
        promql = self.prometheus(cluster.now)
        promql.begin()
        if wanted.shares_only:
            found = prometheus.measured_shares(promql.ask, wanted.prometheus.query, cluster)
        else:
            found = prometheus.measured(promql.ask, wanted.prometheus, wanted.max_sample_age, cluster, promql.ask_range)
        return replace(found, warnings=(*found.warnings, *promql.warnings))

    def _ask_load_watcher(self, _: None) -> load_watcher.LoadWatcherAnswer:
        provider = self._given[LOAD_WATCHER].load_watcher
        assert provider is not None  # a policy without it is refused
        return load_watcher.ask(provider, self._is_ending)

    def _connect(self, now: datetime) -> PromQL:
        provider = self._given[PROMETHEUS].prometheus
        assert provider is not None
        auth = credentials(provider, self._service_account, self._read_secret)
        return PromQL(provider, auth, self._service_account, now, self._is_ending)

    def _by_load_watcher(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        answer = self._load_watcher(None)
        self._note(LOAD_WATCHER, answer.ended)  # noted even if the window is too old
        found = load_watcher.measured(answer, wanted.max_sample_age, cluster)
        if not self._has(KUBERNETES_METRICS):
            return found
        try:
            metrics = self._metrics(None)
        except SourceError as error:
            return replace(found, warnings=(*found.warnings, f"what pods use is unknown: {error}"))
        pods = metrics_server.pod_usage(metrics, metrics_server.DEFAULT_MAX_AGE, cluster.now)
        return replace(found, pods=pods)


_NAMED = 3
#: A node's figure is not believed where more than half of what its pods use is missing from it,
_CONTRADICTION = 2.0
#: and so much more in shares of its capacity: below that it is noise of samples taken at different times.
_NOISE = 0.01


def without_contradictions(found: Measured, cluster: Cluster) -> Measured:
    """Return usage without the nodes that seem to use far less than the pods on them: such a figure is not believed.

    Example: a node uses 1 core, and its pods use 2.1 cores together.  Pods were sent there, since it seemed to be idle.
    """
    if not found.pods:
        return found
    contradicted = {
        node.name: why
        for node in cluster.nodes
        if node.name in found.nodes and (why := _contradiction(node, found, cluster))
    }
    return replace(
        found,
        nodes={name: used for name, used in found.nodes.items() if name not in contradicted},
        peaks={name: used for name, used in found.peaks.items() if name not in contradicted},
        missing={**found.missing, **contradicted},
    )


def _contradiction(node: Node, found: Measured, cluster: Cluster) -> str:
    pods, nodes = found.pods or {}, found.pod_nodes
    here = [pod.key for pod in cluster.active_pods_on(node) if nodes.get(pod.key, node.name) == node.name]
    measured = [pods[key] for key in here if key in pods]
    for name, used in found.nodes[node.name].items():
        together = sum(each.get(name, 0) for each in measured)
        if together > _CONTRADICTION * used and together - used > _NOISE * node.capacity.get(name, 0):
            return f"its pods use more than twice the {name} that it seems to use: {together} and {used}"
    return ""


def without_missing_samples(
    found: Measured, wanted: MetricsUtilization, cluster: Cluster, resources: Iterable[str]
) -> Measured:
    """Return usage that is complete enough for a strategy; in `found` each node of the cycle has usage or is missing.

    Nodes without fresh samples of all resources get their requests as usage of the others where the policy says
    `whenMissing: requests`, and so do their pods.  Otherwise they are left out with a warning, and at least
    `minFreshNodes` must be left.  Raises StrategyError if too few nodes have fresh figures.
    """
    if not found.missing:
        return found
    if wanted.when_missing == "requests":
        return _with_requests(found, cluster, tuple(resources))
    nodes, peaks = (
        {name: used for name, used in each.items() if name not in found.missing} for each in (found.nodes, found.peaks)
    )
    total = len(cluster.nodes)
    fresh = total - len(found.missing)
    reasons = described(found.missing)
    if fresh * 100 < wanted.min_fresh_nodes * total:
        also = "".join(f"; {text}" for text in found.warnings)
        found_out = f"only {fresh} of {total} nodes have fresh usage, and minFreshNodes is {wanted.min_fresh_nodes:g} %"
        raise StrategyError(f"{found_out}: {reasons}{also}")
    warning = f"nodes without fresh usage are neither source nor destination: {reasons}"
    return replace(found, nodes=nodes, peaks=peaks, warnings=(*found.warnings, warning))


def _with_requests(found: Measured, cluster: Cluster, resources: tuple[str, ...]) -> Measured:
    def only(amounts: Resources) -> Resources:
        return {name: amounts.get(name, 0) for name in resources}

    absent = {node.name: node for node in cluster.nodes if node.name in found.missing}
    nodes, peaks = (
        {**measured, **{name: {**only(cluster.used(node)), **measured.get(name, {})} for name, node in absent.items()}}
        for measured in (found.nodes, found.peaks)
    )
    pods = found.pods if any(found.nodes.values()) else {}
    if pods is not None:
        pods = dict(pods)
        for name, node in absent.items():
            for pod in cluster.active_pods_on(node):
                known = {
                    each: amount for each, amount in pods.get(pod.key, {}).items() if each in found.nodes.get(name, ())
                }
                pods[pod.key] = {**only(pod.spec.requests), **known}
    return replace(
        found,
        nodes=nodes,
        peaks=peaks,
        pods=pods,
        missing={},
        warnings=(*found.warnings, f"requests stand in for missing usage: {described(found.missing)}"),
    )


def described(missing: Mapping[str, str]) -> str:
    """Return why nodes are missing: the first three by name, and how many more there are."""
    named = [f"{name} ({missing[name]})" for name in sorted(missing)[:_NAMED]]
    more = len(missing) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
