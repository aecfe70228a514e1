"""A view of a live cluster: lists, real usage and tokens; and the error or warning where they cannot be read."""

import base64
import binascii
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec

from rebalancer.cluster.cluster import Measure
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.patience import Recollection
from rebalancer.errors import ClusterError, Forbidden, SourceError, Unreachable
from rebalancer.kube.answers import NotFound, Rejected
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.config import SERVICE_ACCOUNT
from rebalancer.kube.lists import Tell, read_list
from rebalancer.kube.tries import Deadline, Halt
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import METRICS_KINDS, PATHS, ListCollector, path_of_list, resource_of
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.policy.usage import SecretReference
from rebalancer.policy.values import Policy
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import described
from rebalancer.run.memory import Diary, MemorySource
from rebalancer.run.options import Deliver, Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Work
from rebalancer.untrusted.documents import Unreadable, decode_json
from rebalancer.usage.metrics_server import Metrics
from rebalancer.usage.sample_age import Sampled

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers  # importing it costs a quarter of a second

_LOG = logging.getLogger(__name__)
#: The key of the token in its Secret (the descheduler's).
_TOKEN_KEY = "prometheusAuthToken"  # noqa: S105  a name, no secret
_SECONDS = 30.0  # to read what metrics-server measured, or a Secret


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What all cycles of one process share: `client` speaks to the API server."""

    options: Options
    client: Client
    telemetry: Telemetry
    interruption: Interruption
    deliver: Deliver

    @property
    def description(self) -> dict[str, str | None]:
        """The cluster, as reports name it."""
        return described(self.client)


@dataclass(frozen=True, slots=True)
class LiveView:
    """A cluster as it was read."""

    snapshot: Snapshot
    measure: Measure  # real usage; each source is asked once, so that all plans of this view use the same figures
    taken_at: float  # the time before the first request, in seconds on the clock of the retry policy
    diary: Diary | None  # knows earlier cycles, and is written by this one; None where the policy asks for no memory

    @property
    def recollection(self) -> Recollection | None:
        """What is known of earlier cycles."""
        return self.diary.recollection if self.diary else None


def view_cluster(run: LiveRun, work: Work) -> LiveView:
    """Read the cluster as it is now."""
    options, client, telemetry = run.options, run.client, run.telemetry
    taken_at = client.retry_policy.clock()
    halt = Halt(options.deadline, client.retry_policy.clock, began=taken_at)
    helpful = work.helpful_kinds | ({"Namespace"} if options.identify else frozenset())
    helpful |= SCHEDULER_KINDS if options.explains else frozenset()
    source = MemorySource.of(client, options.lease)
    with telemetry.stage("read"):
        found = source.read(datetime.now(UTC)) if work.trust else None
        snapshot = work.seen(read_cluster(client, work.needed_kinds, halt, helpful, telemetry.progress.reading))
    if options.chosen:
        options.chosen.demand(snapshot)
    ask = partial(live_providers, work.policy, client, halt.deadline, telemetry.samples, METRICS_KINDS)
    providers = cache(ask)  # they are asked when a strategy first wants to know, and not after the deadline
    measure = telemetry.measure(lambda cluster, wanted: providers().measure(cluster, wanted))
    diary = Diary(source, found, work.trust, snapshot) if found and work.trust else None
    return LiveView(snapshot, measure, taken_at, diary)


def read_cluster(
    client: Client,
    kinds: Iterable[str],
    halt: Halt,
    helpful: Iterable[str] = (),
    tell: Tell = lambda _resource, _count, _more: None,
) -> Snapshot:
    """Read nodes, pods and these kinds; the snapshot's `now` is the time before the first request.

    `helpful` kinds are read after the pods, so that what pods refer to is there; without the permission for one there
    is a warning.  The error for the others names every kind that cannot be read, so that a role is mended in one go.
    """
    now = datetime.now(UTC)
    collection = Collection()
    needed = {"Node", "Pod", *kinds}

    def failed(kinds: Iterable[str], *expected: type[ClusterError]) -> dict[str, ClusterError]:
        found: dict[str, ClusterError] = {}
        for kind in sorted(kinds):
            try:
                _read_kind(client, collection, kind, halt, tell)
            except expected as error:
                found[kind] = error
        return found

    if missing := failed(needed, Forbidden):
        raise Forbidden(f"{next(iter(missing.values()))}\n{unread_in_words(missing)}")
    unread = failed(set(helpful) - needed, Forbidden, Rejected)
    warnings = []
    for what, concerns_scheduler in (("where the scheduler puts pods", True), ("what others scale", False)):
        of = {kind: error for kind, error in unread.items() if (kind in SCHEDULER_KINDS) == concerns_scheduler}
        if of:
            warnings.append(f"{what} is unknown in part: {unread_in_words(of)}")
    try:
        return collection.snapshot(now, tuple(warnings))
    except ValueError as error:
        raise ClusterError(f"{client.connection.server} does not answer like an API server: {error}") from error


def _read_kind(client: Client, collection: Collection, kind: str, halt: Halt, tell: Tell) -> None:
    def told(found: ListCollector[Any, Any]) -> None:
        tell(PATHS[kind].rpartition("/")[2], len(found.items), found.more)

    try:
        new = partial(collection.collector, kind)
        collector = read_list(client, PATHS[kind], new, deadline=halt.deadline, after_page=told)
    except Unreachable as error:
        if halt.deadline.left():
            raise
        raise Unreachable(f"the cluster could not be read in time: {halt.reason} ({error})") from error
    _LOG.info("read %d objects of kind %s", len(collector.items), kind)
    collection.replace(kind, collector)


def unread_in_words(unread: Mapping[str, ClusterError]) -> str:
    """Return why kinds could not be read, and the rules that the role lacks; empty if all were read."""
    forbidden = [resource_of(kind) for kind, error in unread.items() if isinstance(error, Forbidden)]
    told = [str(error) for error in unread.values() if not isinstance(error, Forbidden)]
    if forbidden:
        names = ", ".join(f"{plural}.{group}" if group else plural for group, plural in forbidden)  # jobs.batch
        plurals: defaultdict[str, list[str]] = defaultdict(list)
        for group, plural in forbidden:
            plurals[group or '""'].append(plural)  # what roles call the core group
        rules = (f"{{apiGroups: [{x}], resources: [{', '.join(of)}], verbs: [list]}}" for x, of in plurals.items())
        told.insert(0, f"no permission to list {names}: add to the ClusterRole {', '.join(rules)}")
    return "; ".join(told)


def live_providers(
    policy: Policy,
    client: Client,
    deadline: Deadline,
    sampled: Sampled = lambda *_: None,
    kinds: tuple[str, ...] = ("NodeMetrics",),
) -> "Providers":
    """Return the policy's sources; these ask metrics-server for the kinds, and nothing after the deadline."""
    from rebalancer.usage.providers import Providers  # noqa: PLC0415  the import is slow, and few runs need it

    return Providers(
        policy,
        partial(_read_metrics, client, deadline, kinds),
        partial(_read_secret, client, deadline),
        service_account=SERVICE_ACCOUNT if client.connection.in_cluster else None,
        sampled=sampled,
        is_ending=client.ending.is_set,
    )


def _read_metrics(client: Client, deadline: Deadline, kinds: tuple[str, ...]) -> Metrics:
    collection = Collection()
    until = Deadline.after(_SECONDS).or_sooner(deadline)
    try:
        for kind in kinds:
            collector = read_list(client, path_of_list(kind), partial(collection.collector, kind), deadline=until)
            collector.unique()
            collection.replace(kind, collector)
    except NotFound as error:
        raise SourceError("usage is unknown: there is no metrics-server (nothing serves metrics.k8s.io)") from error
    except (ClusterError, ValueError, msgspec.MsgspecError) as error:
        raise SourceError(f"metrics-server cannot be asked: {error}") from error
    collectors = collection.collectors
    malformed = (*collectors["NodeMetrics"].warnings, *collectors["PodMetrics"].warnings)
    return Metrics(collectors["NodeMetrics"].items, collectors["PodMetrics"].items, malformed)


class _Secret(msgspec.Struct):
    data: Mapping[str, str] | None = None


def _read_secret(client: Client, deadline: Deadline, secret: SecretReference) -> str:
    name = f"the Secret {secret.namespace}/{secret.name}"
    path = "/api/v1" + path_of("namespaces", secret.namespace, "secrets", secret.name)
    try:
        until = Deadline.after(_SECONDS).or_sooner(deadline)
        document = decode_json(client.get(path, deadline=until), _Secret)
        return base64.b64decode((document.data or {})[_TOKEN_KEY], validate=True).decode()
    except KeyError:
        raise SourceError(f"{name} has no key {_TOKEN_KEY}") from None
    except (ClusterError, Unreadable, binascii.Error, UnicodeDecodeError) as error:
        raise SourceError(f"{name} cannot be read: {error}") from error
