"""The reasons for which a pod stays whatever a strategy says: a table of names and predicates.

Source: the descheduler's DefaultEvictor.  Stricter than it: mirror, static and terminating pods stay whatever their
annotations say.  So do a pod that could not be read in full, and all pods of a node that could not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pod import SYSTEM_CRITICAL_CLASSES, SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.cluster.snapshot import DisruptionBudget, Snapshot
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import UsageError
from rebalancer.eviction.causes import Code
from rebalancer.policy.evictor import DefaultEvictorArgs

#: Returns by which figures the pod stays, None if it need not.
Reason = Callable[[Pod], Mapping[str, Any] | None]

_HOLDS: Mapping[str, Any] = MappingProxyType({})


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
    yield Protection(Code.MALFORMED_PODS, lambda pod: {"problem": pod.problem} if pod.problem else None)
    yield Protection(Code.MIRROR_PODS, lambda pod: _HOLDS if pod.mirror else None)
    yield Protection(Code.STATIC_PODS, lambda pod: _HOLDS if pod.static else None)
    yield Protection(Code.TERMINATING_PODS, lambda pod: _HOLDS if pod.terminating else None)
    yield Protection(Code.MALFORMED_NODES, lambda pod: unread.get(pod.node))


def configured(args: DefaultEvictorArgs, cluster: Cluster) -> Iterator[Protection]:
    """Yield what arguments put in force, in the descheduler's order; raises UsageError for an unknown PriorityClass."""
    threshold = _threshold(args, cluster.snapshot)
    names = args.protections()
    if args.no_eviction_policy == "Mandatory":
        yield Protection(Code.PREFER_NO_EVICTION, lambda pod: _HOLDS if pod.prefer_no_eviction else None)
    if Code.SYSTEM_CRITICAL_PODS in names:
        yield Protection(Code.SYSTEM_CRITICAL_PODS, _critical)
        yield Protection(Code.PRIORITY_THRESHOLD, _above(threshold))
    if Code.FAILED_BARE_PODS in names:
        yield Protection(Code.FAILED_BARE_PODS, lambda pod: _HOLDS if not pod.owners else None)
    else:
        yield Protection(Code.BARE_PODS, lambda pod: _HOLDS if not pod.owners and pod.phase != "Failed" else None)
    named: Mapping[Code, Reason] = {
        Code.LOCAL_STORAGE: lambda pod: _HOLDS if pod.spec.local_storage else None,
        Code.DAEMON_SET_PODS: lambda pod: _HOLDS if any(each.kind == "DaemonSet" for each in pod.owners) else None,
        Code.PVC: _persistent(cluster, args.protected_storage_classes()),
        Code.WITHOUT_PDB: _without_pdb(cluster.snapshot.budgets),
        Code.RESOURCE_CLAIMS: lambda pod: _HOLDS if pod.spec.resource_claims else None,
    }
    yield from (Protection(code, reason) for code, reason in named.items() if code in names)
    if selector := args.label_selector:
        yield Protection(Code.LABEL_SELECTOR, lambda pod: _HOLDS if not selector.matches(pod.labels) else None)
    if args.min_pod_age is not None:
        minimum = args.min_pod_age.total_seconds()
        yield Protection(Code.MIN_POD_AGE, lambda pod: _too_young(pod, cluster, minimum))


def _critical(pod: Pod) -> Mapping[str, Any] | None:
    priority = pod.spec.priority
    if priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY:
        return {"priority": priority, "threshold": SYSTEM_CRITICAL_PRIORITY}
    if pod.spec.priority_class in SYSTEM_CRITICAL_CLASSES:
        return {"priority_class": pod.spec.priority_class}
    return {"annotated": True} if pod.marked_critical else None


def _threshold(args: DefaultEvictorArgs, snapshot: Snapshot) -> int:
    given = args.priority_threshold
    if not given.name:
        return SYSTEM_CRITICAL_PRIORITY if given.value is None else given.value
    value = (snapshot.priority_classes or {}).get(given.name)
    if value is None:
        raise UsageError(f"priorityThreshold names the PriorityClass {given.name!r}, which the cluster does not have")
    return value


def _above(threshold: int) -> Reason:
    def reason(pod: Pod) -> Mapping[str, Any] | None:
        priority = pod.spec.priority
        return None if priority is None or priority < threshold else {"priority": priority, "threshold": threshold}

    return reason


def _persistent(cluster: Cluster, classes: frozenset[str]) -> Reason:
    claims = cluster.snapshot.claims or {}

    def reason(pod: Pod) -> Mapping[str, Any] | None:
        if not classes:
            return _HOLDS if pod.claims else None
        for name in pod.claims:
            storage_class = claims.get((pod.namespace, name))
            # A claim whose class is unknown counts as protected.
            if storage_class is None or storage_class in classes:
                return {"claim": name, "storage_class": storage_class}
        return None

    return reason


def _without_pdb(budgets: tuple[DisruptionBudget, ...] | None) -> Reason:
    found = cache(lambda: DisruptionBudgets(budgets or ()))  # only where it is asked

    def reason(pod: Pod) -> Mapping[str, Any] | None:
        if budgets is None:
            return {"known": False}
        return None if found().select(pod) else _HOLDS

    return reason


def _too_young(pod: Pod, cluster: Cluster, minimum: float) -> Mapping[str, Any] | None:
    if pod.started is None:
        return {"age_seconds": None, "minimum_seconds": minimum}
    age = (cluster.now - pod.started).total_seconds()
    return {"age_seconds": age, "minimum_seconds": minimum} if age < minimum else None
