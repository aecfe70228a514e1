"""Real usage from a live cluster: metrics-server's lists, and the tokens that the policy's sources need."""

import base64
import binascii
from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

import msgspec

from rebalancer.cluster.cluster import Measure
from rebalancer.errors import ClusterError, SourceError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.client import path_of
from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.halt import Deadline
from rebalancer.kube.lists import read_list
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import METRICS_KINDS, path_of_list
from rebalancer.policy.usage import SecretReference
from rebalancer.policy.values import Policy
from rebalancer.run.live import LiveCluster
from rebalancer.untrusted.documents import Unreadable, decode_json
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.sample_age import Sampled, ignored

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers  # importing it costs a quarter of a second

#: The key of the token in its Secret (the descheduler's).
_TOKEN_KEY = "prometheusAuthToken"  # noqa: S105  a name, no secret
_SECONDS = 30.0


def live_usage(policy: Policy, live: LiveCluster, deadline: Deadline, sampled: Sampled = ignored) -> Measure:
    """Return the function that gives strategies real usage; it reads when first called, and not after the deadline.

    `sampled` is called with each source that answers, with the time of its oldest sample.
    """
    providers = cache(partial(live_providers, policy, live, deadline, sampled, METRICS_KINDS))
    return lambda cluster, wanted: providers().measure(cluster, wanted)


def live_providers(
    policy: Policy,
    live: LiveCluster,
    deadline: Deadline,
    sampled: Sampled = ignored,
    kinds: tuple[str, ...] = ("NodeMetrics",),
) -> "Providers":
    """Return the policy's sources themselves, for questions about nodes; the arguments are those of `live_usage`."""
    from rebalancer.usage.providers import Providers  # noqa: PLC0415  the import is slow, and few runs need it

    return Providers(
        policy,
        partial(_read_metrics, live, deadline, kinds),
        partial(_read_secret, live, deadline),
        service_account=SERVICE_ACCOUNT if live.connection.in_cluster else None,
        sampled=sampled,
        is_ending=live.client.ending.is_set,
    )


def _read_metrics(live: LiveCluster, deadline: Deadline, kinds: tuple[str, ...]) -> Metrics:
    """Read usage from metrics-server: the lists of these kinds, of nodes and of pods.

    Raises:
        SourceError: it does not answer, or the permission is missing.
    """
    collection = Collection()
    until = Deadline.after(_SECONDS).or_sooner(deadline)
    try:
        for kind in kinds:
            collector = read_list(live.client, path_of_list(kind), partial(collection.collector, kind), deadline=until)
            collector.unique()
            collection.replace(kind, collector)
    except NotFound as error:
        raise SourceError("usage is unknown: there is no metrics-server (nothing serves metrics.k8s.io)") from error
    except (ClusterError, ValueError, msgspec.MsgspecError) as error:
        raise SourceError(f"metrics-server cannot be asked: {error}") from error
    collectors = collection.collectors
    malformed = (*collectors["NodeMetrics"].warnings, *collectors["PodMetrics"].warnings)
    return Metrics(collectors["NodeMetrics"].items, collectors["PodMetrics"].items, malformed)


def _read_secret(live: LiveCluster, deadline: Deadline, secret: SecretReference) -> str:
    """Read the bearer token that a Secret holds.

    Raises:
        SourceError: the Secret cannot be read, or holds no token.
    """
    name = f"the Secret {secret.namespace}/{secret.name}"
    path = "/api/v1" + path_of("namespaces", secret.namespace, "secrets", secret.name)
    try:
        until = Deadline.after(_SECONDS).or_sooner(deadline)
        document = decode_json(live.client.get(path, deadline=until), _Secret)
        return base64.b64decode((document.data or {})[_TOKEN_KEY], validate=True).decode()
    except KeyError:
        raise SourceError(f"{name} has no key {_TOKEN_KEY}") from None
    except (ClusterError, Unreadable, binascii.Error, UnicodeDecodeError) as error:
        raise SourceError(f"{name} cannot be read: {error}") from error


class _Secret(msgspec.Struct):
    data: Mapping[str, str] | None = None
