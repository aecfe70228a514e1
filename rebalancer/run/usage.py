"""Real usage for a cycle: the policy's sources, set up when a strategy first asks for one of them."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from rebalancer.cluster.cluster import Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import SourceError
from rebalancer.policy.providers import SecretReference
from rebalancer.policy.values import Policy
from rebalancer.usage.metrics_server import Metrics

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers  # importing it costs a quarter of a second


def measure_by(set_up: Callable[[], "Providers"]) -> Measure:
    """Return the function that gives strategies real usage; the sources are set up when it is first called."""
    providers = cache(set_up)
    return lambda cluster, wanted: providers().measure(cluster, wanted)


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

    def set_up() -> "Providers":
        from rebalancer.usage.providers import Providers  # noqa: PLC0415  the import is slow, and few runs need it

        return Providers(policy, read_metrics, read_secret, service_account=None)

    return measure_by(set_up)
