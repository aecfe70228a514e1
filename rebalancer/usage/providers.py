"""The sources of usage that a policy sets up, and their answers to strategies."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.loads import METRICS_SERVER, LoadsWanted, NodeLoads
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.errors import SourceError, StrategyError
from rebalancer.marking.pressure import RuleAnswer
from rebalancer.marking.rules import PressureRule
from rebalancer.policy.providers import LoadWatcher, MetricsProvider, Prometheus
from rebalancer.policy.usage import KUBERNETES_METRICS, LOAD_WATCHER, PROMETHEUS, MetricsUtilization
from rebalancer.usage import load_watcher, metrics_server, prometheus, rule_queries
from rebalancer.usage.credentials import ReadSecret, credentials
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.missing_samples import without_contradictions, without_missing_samples
from rebalancer.usage.promql import PromQL, ask_once
from rebalancer.usage.sample_age import OldestSamples, Sampled, ignored

_NOT_SET_UP = "{0} is not set up: add `- source: {0}` to the policy's metricsProviders"


class Providers:
    """The answers of the policy's sources in one cycle; a question is sent when a strategy needs it, and only once.

    Args:
        given: the policy's providers.
        collector: whether the policy turns on usage from metrics-server by the deprecated switch.
        read_metrics: reads metrics-server's answer; raises SourceError.
        read_secret: reads a token from its Secret; raises SourceError.
        service_account: the folder with the pod's token and certificates; None outside a pod.
        sampled: called with each source that answers, with the time of its oldest sample.
        is_ending: returns whether the program is told to end.
    """

    def __init__(
        self,
        given: Iterable[MetricsProvider],
        *,
        collector: bool,
        read_metrics: Callable[[], Metrics],
        read_secret: ReadSecret,
        service_account: Path | None,
        sampled: Sampled = ignored,
        is_ending: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_ending = is_ending
        self._given = {each.source: each for each in given}
        self._collector = collector
        self._read_secret = read_secret
        self._service_account = service_account
        self._samples = OldestSamples(sampled)
        self._metrics = ask_once(lambda _: read_metrics())
        self._promql = ask_once(self._connect)
        self._load_watcher = ask_once(lambda _: load_watcher.ask(self._load_watcher_provider(), is_ending))

    def measure(self, cluster: Cluster, wanted: object) -> Measured:
        """Return what nodes and pods use (a `rebalancer.cluster.cluster.Measure`).

        Raises:
            StrategyError: the source is not set up, does not answer, or has fresh figures for too few nodes.
        """
        if isinstance(wanted, LoadsWanted):
            return Measured({}, {}, loads=self._loads(cluster, wanted))
        assert isinstance(wanted, MetricsUtilization)
        if not self._has(wanted.origin):
            raise StrategyError(_NOT_SET_UP.format(wanted.origin))
        try:
            found = self._ask(cluster, wanted)
        except SourceError as error:
            if wanted.when_missing != "requests":
                raise
            found = Measured({}, {}, missing=dict.fromkeys((node.name for node in cluster.nodes), str(error)))
        return without_missing_samples(found, wanted, cluster, _resources(wanted))

    def answer(self, rule: PressureRule, nodes: Iterable[Node], now: datetime) -> RuleAnswer:
        """Return what the query of a marking rule gives; one time-out counts for all rules of an evaluation.

        Raises:
            SourceError: Prometheus does not answer, or with something that cannot be used.
        """
        if not self._has(PROMETHEUS):
            raise SourceError(_NOT_SET_UP.format(PROMETHEUS))
        promql = self._promql(now)
        found = rule_queries.answer(promql.ask, rule, nodes)
        return replace(found, warnings=(*found.warnings, *promql.warnings))

    def _loads(self, cluster: Cluster, wanted: LoadsWanted) -> NodeLoads:
        """Return the figures that a scheduler goes by: load-watcher's, or those that it would make of its source.

        Raises:
            SourceError: the source is not set up, or does not answer.
        """
        if self._has(LOAD_WATCHER):
            return load_watcher.loads(self._load_watcher(None), cluster.now)
        if wanted.source == METRICS_SERVER and self._has(KUBERNETES_METRICS):
            return metrics_server.loads(self._metrics(None), cluster)
        cure = KUBERNETES_METRICS if wanted.source == METRICS_SERVER else LOAD_WATCHER
        raise SourceError(
            f"the scheduler asks {wanted.source}: add `- source: {cure}` to the policy's metricsProviders"
        )

    def _has(self, source: str) -> bool:
        return source in self._given or (source == KUBERNETES_METRICS and self._collector)

    def _ask(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        match wanted.origin:
            case "KubernetesMetrics":
                found = metrics_server.measured(self._metrics(None), wanted.max_sample_age, cluster)
            case "LoadWatcher":
                found = self._by_load_watcher(cluster, wanted)
            case _:
                found = self._by_prometheus(cluster, wanted)
        self._samples.note(wanted.origin, found.taken)
        # Averages and quantiles of a node and of its pods are not about the same moment, and may differ.
        is_of_one_moment = not found.window and wanted.origin != LOAD_WATCHER
        return without_contradictions(found, cluster) if is_of_one_moment else found

    def _by_prometheus(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        assert wanted.prometheus is not None
        promql = self._promql(cluster.now)
        promql.begin()
        if wanted.shares_only:
            found = prometheus.measured_shares(promql.ask, wanted.prometheus.query, cluster)
        else:
            found = prometheus.measured(promql.ask, wanted.prometheus, wanted.max_sample_age, cluster, promql.ask_range)
        return replace(found, warnings=(*found.warnings, *promql.warnings))

    def _connect(self, now: datetime) -> PromQL:
        provider = self._given[PROMETHEUS].prometheus or Prometheus()
        return PromQL(
            provider,
            credentials(provider, self._service_account, self._read_secret),
            self._service_account,
            now,
            self._is_ending,
        )

    def _by_load_watcher(self, cluster: Cluster, wanted: MetricsUtilization) -> Measured:
        answer = self._load_watcher(None)
        self._samples.note(LOAD_WATCHER, load_watcher.taken(answer))  # noted even if the window is too old
        found = load_watcher.measured(answer, wanted.max_sample_age, cluster)
        if not self._has(KUBERNETES_METRICS):
            return found
        try:
            metrics = self._metrics(None)
        except SourceError as error:
            return replace(found, warnings=(*found.warnings, f"what pods use is unknown: {error}"))
        pods = metrics_server.pod_usage(metrics, metrics_server.DEFAULT_MAX_AGE, cluster.now)
        return replace(found, pods=pods)

    def _load_watcher_provider(self) -> LoadWatcher:
        return self._given[LOAD_WATCHER].load_watcher or LoadWatcher()


def _resources(wanted: MetricsUtilization) -> tuple[str, ...]:
    """Return the resources that the source measures."""
    return tuple(wanted.prometheus.nodes) if wanted.prometheus else metrics_server.RESOURCES
