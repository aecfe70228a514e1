"""What tests of usage share: nodes with addresses, and sources set up as policies do it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import LoadsWanted, Measured, NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import parse_resources
from rebalancer.errors import SourceError
from rebalancer.policy.usage import MetricsProvider, MetricsUtilization
from rebalancer.policy.v1alpha2 import MetricsCollector
from rebalancer.policy.values import Policy
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.providers import Providers
from rebalancer.usage.sample_age import Sampled
from tests.make import node


def unread(*_: object) -> NoReturn:
    raise SourceError("it was not meant to be read")


class Sources:
    """Sources of usage set up as in a policy, for one cycle after another."""

    def __init__(
        self,
        *given: Mapping[str, Any],
        metrics: Metrics | None = None,
        read_metrics: Callable[[], Metrics] = unread,
        secret: Any = unread,
        service_account: Path | None = None,
        collector: bool = False,
        sampled: Sampled = lambda *_: None,
    ) -> None:
        providers = tuple(MetricsProvider.model_validate(each) for each in given)
        self._providers = Providers(
            Policy(metrics_providers=providers, metrics_collector=MetricsCollector(enabled=collector)),
            read_metrics if metrics is None else lambda: metrics,
            secret,
            service_account=service_account,
            sampled=sampled,
        )

    def measure(self, on: Cluster, **wanted: Any) -> Measured:
        """Ask as a strategy does; `wanted` as a policy spells `metricsUtilization`."""
        return self._providers.measure(on, MetricsUtilization.model_validate(wanted))

    def loads(self, on: Cluster, source: str) -> NodeLoads | None:
        """Ask as the simulated scheduler does, whose own source has this name."""
        return self._providers.measure(on, LoadsWanted(source)).loads


def nodes(count: int) -> list[Node]:
    """Return n1, n2, ...: 4 cores and 16Gi, of which 3 and 12Gi are allocatable; n1 has the address 10.0.0.1."""
    return [
        msgspec.structs.replace(
            node(
                f"n{number}",
                cpu="3",
                memory="12Gi",
                addresses={"InternalIP": f"10.0.0.{number}", "Hostname": f"h{number}"},
            ),
            capacity=parse_resources({"cpu": "4", "memory": "16Gi", "pods": "110"}),
        )
        for number in range(1, count + 1)
    ]


def prometheus(url: str, **fields: Any) -> dict[str, Any]:
    """Return the provider of a policy."""
    return {"source": "Prometheus", "prometheus": {"url": url, **fields}}
