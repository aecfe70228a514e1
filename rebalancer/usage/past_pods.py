"""Whose pods were, of those that are gone as well, and when their containers began; asked of Prometheus day by day.

Example: `kube_pod_owner` of kube-state-metrics says that web-5d8f7b9c64-x2x7k was of the ReplicaSet web-5d8f7b9c64, and
`kube_replicaset_owner` that this one was of the Deployment web.  cAdvisor tells when a container began, and so when it
was restarted.
"""

from rebalancer.errors import SourceError
from rebalancer.recommendation.samples import ContainerOfPod
from rebalancer.usage.history import AskRange, Span

_OWNER = "owner_kind, owner_name"
PODS_QUERY = f'max by (namespace, pod, {_OWNER}) (max_over_time(kube_pod_owner{{owner_name!="<none>"}}[6h]))'
REPLICA_SETS_QUERY = (
    f'max by (namespace, replicaset, {_OWNER}) (max_over_time(kube_replicaset_owner{{owner_name!="<none>"}}[6h]))'
)
#: The times at which containers began that did so in the hour before.
STARTS_QUERY = (
    'max by (namespace, pod, container) (container_start_time_seconds{container!="",container!="POD"})'
    " > (time() - 3600)"
)
_WINDOW, _HOUR, _DAY = 6 * 3600, 3600, 86_400

#: By namespace and name, the kind and the name of the owner.
Owners = dict[tuple[str, str], tuple[str, str]]


def read_owners(ask: AskRange, span: Span) -> tuple[Owners, list[str]]:
    """Return the owners of pods, and what is missing; in the place of a ReplicaSet its Deployment, if that is known."""
    pods: Owners = {}
    replica_sets: Owners = {}
    missing = []
    try:
        for begin in range(span.start, span.end, _DAY):
            end = min(begin + _DAY, span.end)
            for query, label, into in ((PODS_QUERY, "pod", pods), (REPLICA_SETS_QUERY, "replicaset", replica_sets)):
                for series in ask(query, min(begin + _WINDOW, end), end, _WINDOW).series:
                    found = [series.labels.get(name, "") for name in ("namespace", label, "owner_kind", "owner_name")]
                    if all(found):
                        into[found[0], found[1]] = found[2], found[3]
    except SourceError as error:
        missing.append(f"owners of pods are not known in full, and told by names: {error}")
    return {
        (namespace, pod): replica_sets.get((namespace, name), (kind, name)) if kind == "ReplicaSet" else (kind, name)
        for (namespace, pod), (kind, name) in pods.items()
    }, missing


def read_starts(ask: AskRange, span: Span) -> tuple[dict[ContainerOfPod, set[int]], list[str]]:
    """Return when containers began within a time, in seconds since 1970, and what is missing.

    Of several starts within an hour only the last one counts.
    """
    starts: dict[ContainerOfPod, set[int]] = {}
    try:
        for begin in range(span.start, span.end, _DAY):
            end = min(begin + _DAY, span.end)
            for series in ask(STARTS_QUERY, min(begin + _HOUR, end), end, _HOUR).series:
                name = ContainerOfPod(*(series.labels.get(each, "") for each in ContainerOfPod._fields))
                began = (round(each.value) for each in series.values if span.start < each.value <= span.end)
                starts.setdefault(name, set()).update(began)
    except SourceError as error:
        return starts, [f"restarts of containers are not known in full: {error}"]
    return starts, []
