"""Real usage for a cycle: the policy's sources, set up when a strategy first asks for one of them."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rebalancer.cluster.cluster import Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SourceError
from rebalancer.policy.providers import SecretReference
from rebalancer.policy.values import Policy
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.sample_age import Sampled, ignored

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers  # importing it costs a quarter of a second


def measure_by(set_up: Callable[[], "Providers"]) -> Measure:
    """Return the function that gives strategies real usage; the sources are set up when it is first called."""
    providers = cache(set_up)
    return lambda cluster, wanted: providers().measure(cluster, wanted)


def providers_of(
    policy: Policy,
    read_metrics: Callable[[], Metrics],
    read_secret: Callable[[SecretReference], str],
    service_account: Path | None,
    sampled: Sampled = ignored,
    is_ending: Callable[[], bool] = lambda: False,
) -> "Providers":
    """Return the sources of usage that a policy sets up.

    Args:
        policy: with its sources.
        read_metrics: reads what metrics-server says; raises SourceError.
        read_secret: reads a token from its Secret; raises SourceError.
        service_account: the folder with the pod's token and certificates; None outside a pod.
        sampled: called with each source that answers, with the time of its oldest sample.
        is_ending: returns whether the program is told to end.
    """
    from rebalancer.usage.providers import Providers  # noqa: PLC0415  the import is slow, and few runs need it

    return Providers(
        policy.metrics_providers,
        collector=policy.metrics_collector_enabled,
        read_metrics=read_metrics,
        read_secret=read_secret,
        service_account=service_account,
        sampled=sampled,
        is_ending=is_ending,
    )


def usage_beside_file(policy: Policy, snapshot: Snapshot) -> Measure:
    """Return the function that gives real usage beside a file: its metrics objects, and other sources as of now."""

    def read_metrics() -> Metrics:
        if snapshot.node_metrics is None:
            raise SourceError(
                "the snapshot holds no NodeMetrics; `rebalancer snapshot` writes them, or add what "
                "`kubectl get nodes.metrics.k8s.io,pods.metrics.k8s.io -A -o json` prints"
            )
        return Metrics(snapshot.node_metrics, snapshot.pod_metrics)

    def read_secret(secret: SecretReference) -> NoReturn:
        name = f"{secret.namespace}/{secret.name}"
        raise SourceError(f"the token is in the Secret {name}, which a snapshot does not hold: use tokenFile")

    return measure_by(lambda: providers_of(policy, read_metrics, read_secret, None))
