"""The reasons for which a pod stays whatever a strategy says: a table of names and predicates.

Source: the descheduler's DefaultEvictor.  Stricter than it: mirror, static and terminating pods stay whatever their
annotations say.  So do a pod that could not be read in full, and all pods of a node that could not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import SYSTEM_CRITICAL_CLASSES, SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.cluster.snapshot import DisruptionBudget, Snapshot
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import UsageError
from rebalancer.eviction.causes import Code
from rebalancer.policy.evictor import DefaultEvictorArgs

#: Returns True, or the details of the cause, if the pod stays; a false value lets it go.
Reason = Callable[[Pod], object]


@dataclass(frozen=True, slots=True)
class Protection:
    """A named reason to refuse a pod."""

    code: Code
    reason: Reason


def absolute(cluster: Cluster) -> Iterator[Protection]:
    """Yield what no annotation and no argument can lift; of a node that could not be read nothing is known."""
    unread = {
        node.name: {"node": node.name, "problem": node.problem} for node in cluster.snapshot.nodes if node.problem
    }
    yield Protection(Code.MALFORMED_PODS, lambda pod: pod.problem and {"problem": pod.problem})
    yield Protection(Code.MIRROR_PODS, lambda pod: pod.mirror)
    yield Protection(Code.STATIC_PODS, lambda pod: pod.static)
    yield Protection(Code.TERMINATING_PODS, lambda pod: pod.terminating)
    yield Protection(Code.MALFORMED_NODES, lambda pod: unread.get(pod.node))


def configured(args: DefaultEvictorArgs, cluster: Cluster) -> Iterator[Protection]:
    """Yield what arguments put in force, in the descheduler's order; raises UsageError for an unknown PriorityClass."""
    threshold = _threshold(args, cluster.snapshot)
    names = args.protections()
    if args.no_eviction_policy == "Mandatory":
        yield Protection(Code.PREFER_NO_EVICTION, lambda pod: pod.prefer_no_eviction)
    if Code.SYSTEM_CRITICAL_PODS in names:
        yield Protection(Code.SYSTEM_CRITICAL_PODS, _critical)
        yield Protection(Code.PRIORITY_THRESHOLD, partial(_above, threshold))
    if Code.FAILED_BARE_PODS in names:
        yield Protection(Code.FAILED_BARE_PODS, lambda pod: not pod.owners)
    else:
        yield Protection(Code.BARE_PODS, lambda pod: not pod.owners and pod.phase != "Failed")
    named: Mapping[Code, Reason] = {
        Code.LOCAL_STORAGE: lambda pod: pod.spec.local_storage,
        Code.DAEMON_SET_PODS: lambda pod: any(each.kind == "DaemonSet" for each in pod.owners),
        Code.PVC: _persistent(cluster, args.protected_storage_classes()),
        Code.WITHOUT_PDB: _without_pdb(cluster.snapshot.budgets),
        Code.RESOURCE_CLAIMS: lambda pod: pod.spec.resource_claims,
    }
    yield from (Protection(code, reason) for code, reason in named.items() if code in names)
    if selector := args.label_selector:
        yield Protection(Code.LABEL_SELECTOR, lambda pod: not selector.matches(pod.labels))
    if args.min_pod_age is not None:
        minimum = args.min_pod_age.total_seconds()
        yield Protection(Code.MIN_POD_AGE, lambda pod: _too_young(pod, cluster, minimum))


def _above(threshold: int, pod: Pod) -> Mapping[str, Any] | None:
    priority = pod.spec.priority
    return None if priority is None or priority < threshold else {"priority": priority, "threshold": threshold}


def _critical(pod: Pod) -> Mapping[str, Any] | None:
    if pod.spec.priority_class in SYSTEM_CRITICAL_CLASSES:
        by_class: dict[str, Any] = {"priority_class": pod.spec.priority_class}
    else:
        by_class = {"annotated": True} if pod.marked_critical else {}
    return _above(SYSTEM_CRITICAL_PRIORITY, pod) or by_class


def _threshold(args: DefaultEvictorArgs, snapshot: Snapshot) -> int:
    given = args.priority_threshold
    if not given.name:
        return SYSTEM_CRITICAL_PRIORITY if given.value is None else given.value
    value = (snapshot.priority_classes or {}).get(given.name)
    if value is None:
        raise UsageError(f"priorityThreshold names the PriorityClass {given.name!r}, which the cluster does not have")
    return value


def _persistent(cluster: Cluster, classes: frozenset[str]) -> Reason:
    claims = cluster.snapshot.claims or {}

    def reason(pod: Pod) -> object:
        if not classes:
            return pod.claims
        found = {name: claims.get((pod.namespace, name)) for name in pod.claims}
        # A claim whose class is unknown counts as protected.
        held = ((name, each) for name, each in found.items() if each is None or each in classes)
        return next(({"claim": name, "storage_class": each} for name, each in held), None)

    return reason


def _without_pdb(budgets: tuple[DisruptionBudget, ...] | None) -> Reason:
    if budgets is None:
        return lambda _: {"known": False}
    found = cache(lambda: DisruptionBudgets(budgets))  # only where it is asked
    return lambda pod: not found().select(pod)


def _too_young(pod: Pod, cluster: Cluster, minimum: float) -> Mapping[str, Any] | None:
    if pod.started is None:
        return {"age_seconds": None, "minimum_seconds": minimum}
    age = (cluster.now - pod.started).total_seconds()
    return {"age_seconds": age, "minimum_seconds": minimum} if age < minimum else None
