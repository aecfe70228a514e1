"""The lists that are read from a live cluster, and the error or warning when one cannot be read."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.closures import EVICTION_RULE
from rebalancer.errors import ClusterError, Forbidden, Unreachable
from rebalancer.kube.answers import Rejected
from rebalancer.kube.halt import Halt
from rebalancer.kube.lists import Tell, read_list
from rebalancer.kube.permissions import may
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.list_collector import ListCollector
from rebalancer.kube.wire.pages import PATHS, path_of_list, resource_of
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.run.live import LiveCluster

_LOG = logging.getLogger(__name__)

#: What roles call the core group.
_CORE = '""'


def read_cluster(
    live: LiveCluster,
    kinds: Iterable[str],
    halt: Halt,
    helpful: Iterable[str] = (),
    tell: Tell = lambda _resource, _count, _more: None,
    *,
    evicts: bool = False,
) -> Snapshot:
    """Read nodes, pods and these kinds; the snapshot's `now` is the time before the first request.

    Args:
        live: the API server.
        kinds: what is needed besides nodes and pods.
        halt: its deadline bounds all lists together.
        helpful: kinds that a run can do without; if the permission is missing, the snapshot has a warning.  They are
            read after the pods, so that the objects that pods refer to are there.
        tell: called with every page.
        evicts: whether pods are evicted later: where a permission is missing, the error names that one too.

    Raises:
        ClusterError: the API server cannot be reached, is too slow for the deadline, or a permission is missing.
    """
    now = datetime.now(UTC)
    collection = Collection()
    needed = {"Node", "Pod", *kinds}
    for kind in sorted(needed):
        try:
            _read_kind(live, collection, kind, halt, tell)
        except Forbidden as error:
            raise _with_all_missing(live, needed, kind, halt, error, evicts=evicts) from error
    unread: dict[str, ClusterError] = {}
    for kind in sorted(set(helpful) - needed):
        try:
            _read_kind(live, collection, kind, halt, tell)
        except (Forbidden, Rejected) as error:
            unread[kind] = error
    others = {kind: error for kind, error in unread.items() if kind in SCHEDULER_KINDS}
    left = {kind: error for kind, error in unread.items() if kind not in others}
    parts = (("where the scheduler puts pods", others), ("what others scale", left))
    warnings = (f"{what} is unknown in part: {problem}" for what, of in parts if (problem := unread_in_words(of)))
    return collection.snapshot(now, tuple(warnings))


def _with_all_missing(
    live: LiveCluster, needed: Iterable[str], first: str, halt: Halt, error: Forbidden, *, evicts: bool
) -> Forbidden:
    """Return the error for all that may not be done, so that its rules are added at once."""
    may_do = partial(may, live.client, halt.deadline)
    others = sorted(set(needed) - {first})
    try:
        missing = sorted({first, *(kind for kind in others if not may_do("list", *resource_of(kind)))})
        cannot_evict = evicts and not may_do("create", "", "pods/eviction")
    except ClusterError:  # it does not say
        missing, cannot_evict = [first], False
    lines = [str(error), unread_in_words(dict.fromkeys(missing, error))]
    if cannot_evict:
        lines.append(f"no permission to create pods/eviction: add to the ClusterRole {EVICTION_RULE}")
    return Forbidden("\n".join(lines))


def _read_kind(live: LiveCluster, collection: Collection, kind: str, halt: Halt, tell: Tell) -> None:
    path, resource = PATHS[kind], PATHS[kind].rpartition("/")[2]

    def told(found: ListCollector[Any, Any]) -> None:
        tell(resource, len(found.items), found.more)

    try:
        new = partial(collection.collector, kind)
        collector = read_list(live.client, path, new, deadline=halt.deadline, after_page=told)
        collector.unique()
    except Unreachable as error:
        if halt.deadline.left():
            raise
        raise Unreachable(f"the cluster could not be read in time: {halt.reason} ({error})") from error
    except (ValueError, msgspec.MsgspecError) as error:
        raise no_list(live, kind, error) from error
    _LOG.info("read %d objects of kind %s", len(collector.items), kind)
    collection.replace(kind, collector)


def no_list(live: LiveCluster, kind: str, error: Exception) -> ClusterError:
    """Return the error for an answer that cannot be read as a list."""
    return ClusterError(
        f"{live.connection.server} does not answer like an API server: "
        f"GET {path_of_list(kind)} gives no list of objects ({error}). Look at the server's address in the kubeconfig."
    )


def unread_in_words(unread: Mapping[str, ClusterError]) -> str:
    """Return why kinds could not be read, and the rules that the role lacks; empty if all were read."""
    forbidden = [kind for kind, error in unread.items() if isinstance(error, Forbidden)]
    told = [str(error) for error in unread.values() if not isinstance(error, Forbidden)]
    if forbidden:
        resources = [reversed(resource_of(kind)) for kind in forbidden]
        names = ", ".join(".".join(filter(None, each)) for each in resources)  # jobs.batch
        told.insert(0, f"no permission to list {names}: add to the ClusterRole {_rules(forbidden)}")
    return "; ".join(told)


def _rules(kinds: Iterable[str]) -> str:
    """Return the rules of a role that allow listing these kinds, as YAML."""
    plurals: defaultdict[str, list[str]] = defaultdict(list)
    for group, plural in map(resource_of, kinds):
        plurals[group or _CORE].append(plural)
    return ", ".join(
        f"{{apiGroups: [{group}], resources: [{', '.join(names)}], verbs: [list]}}" for group, names in plurals.items()
    )
