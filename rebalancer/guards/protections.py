"""The reasons for which a pod stays whatever a strategy says: a table of names and predicates.

Source: the reference's DefaultEvictor.  Stricter than it: mirror, static and terminating pods stay whatever their
annotations say, and so do a pod that could not be read in full and the pods of a node that could not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rebalancer.args import evictor as evictor_args
from rebalancer.args.evictor import DefaultEvictorArgs
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.pdb import EVERY_NAMESPACE, DisruptionBudget
from rebalancer.cluster.pod import SYSTEM_CRITICAL_CLASSES, SYSTEM_CRITICAL_PRIORITY, Pod
from rebalancer.eviction.verdict import Refused

#: Returns why the pod stays, empty if it need not.
Reason = Callable[[Pod], str]


@dataclass(frozen=True, slots=True)
class Protection:
    """A named reason to refuse a pod."""

    name: str
    reason: Reason

    def refusal(self, pod: Pod) -> Refused | None:
        """Return the refusal of a protected pod, or None."""
        reason = self.reason(pod)
        return Refused(self.name, reason) if reason else None


#: What no annotation and no argument can lift.
ABSOLUTE = (
    Protection("MalformedPods", lambda pod: pod.problem and f"could not be read: {pod.problem}"),
    Protection("MirrorPods", lambda pod: "a mirror pod, the kubelet would keep it" if pod.mirror else ""),
    Protection("StaticPods", lambda pod: "a static pod, the kubelet would keep it" if pod.static else ""),
    Protection("TerminatingPods", lambda pod: "already terminating" if pod.terminating else ""),
)


def on_unread_nodes(cluster: Cluster) -> Protection:
    """Return the protection of pods on nodes that could not be read: nothing is known of where they run."""

    def reason(pod: Pod) -> str:
        node = cluster.node(pod.node)
        return f"its node {node.name} could not be read: {node.problem}" if node and node.problem else ""

    return Protection("MalformedNodes", reason)


def mandatory_no_eviction(args: DefaultEvictorArgs) -> Iterator[Protection]:
    """Yield the protection by annotation where the policy makes it mandatory."""
    if args.no_eviction_policy == "Mandatory":
        yield Protection(
            "PreferNoEviction", lambda pod: "annotated prefer-no-eviction" if pod.prefer_no_eviction else ""
        )


def configured(args: DefaultEvictorArgs, threshold: int, cluster: Cluster) -> Iterator[Protection]:
    """Yield the protections that the evictor's arguments put in force, in the reference's order."""
    names = args.protections()
    yield from mandatory_no_eviction(args)
    if evictor_args.SYSTEM_CRITICAL in names:
        yield Protection(evictor_args.SYSTEM_CRITICAL, _critical)
        yield Protection("PriorityThreshold", _above(threshold))
    if evictor_args.FAILED_BARE in names:
        yield Protection(evictor_args.FAILED_BARE, lambda pod: "" if pod.owners else "has no owner")
    else:
        yield Protection("BarePods", _bare_and_alive)
    if evictor_args.LOCAL_STORAGE in names:
        yield Protection(evictor_args.LOCAL_STORAGE, lambda pod: "uses local storage" if pod.spec.local_storage else "")
    if evictor_args.DAEMON_SET in names:
        yield Protection(evictor_args.DAEMON_SET, _of_daemon_set)
    if evictor_args.PVC in names:
        yield Protection(evictor_args.PVC, _persistent(cluster, args.protected_storage_classes()))
    if evictor_args.WITHOUT_PDB in names:
        yield Protection(evictor_args.WITHOUT_PDB, _without_pdb(cluster.snapshot.budgets))
    if evictor_args.RESOURCE_CLAIMS in names:
        yield Protection(evictor_args.RESOURCE_CLAIMS, lambda pod: "claims devices" if pod.spec.resource_claims else "")
    yield from _selection(args, cluster)


def _selection(args: DefaultEvictorArgs, cluster: Cluster) -> Iterator[Protection]:
    if selector := args.label_selector:
        yield Protection(
            "LabelSelector", lambda pod: "" if selector.matches(pod.labels) else "labels do not match the evictor's"
        )
    if args.min_pod_age is not None:
        minimum = args.min_pod_age
        yield Protection("MinPodAge", lambda pod: _too_young(pod, cluster, minimum.total_seconds()))


def _critical(pod: Pod) -> str:
    priority = pod.spec.priority
    if priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY:
        return f"critical: priority {priority} >= {SYSTEM_CRITICAL_PRIORITY}"
    if pod.spec.priority_class in SYSTEM_CRITICAL_CLASSES:
        return f"critical: its priority class is {pod.spec.priority_class}"
    return "annotated as critical" if pod.marked_critical else ""


def _above(threshold: int) -> Reason:
    def reason(pod: Pod) -> str:
        priority = pod.spec.priority
        return "" if priority is None or priority < threshold else f"priority {priority} >= {threshold}"

    return reason


def _bare_and_alive(pod: Pod) -> str:
    return "" if pod.owners or pod.phase == "Failed" else "has no owner and has not failed"


def _of_daemon_set(pod: Pod) -> str:
    return "belongs to a DaemonSet" if any(owner.kind == "DaemonSet" for owner in pod.owners) else ""


def _persistent(cluster: Cluster, classes: frozenset[str]) -> Reason:
    claims = cluster.snapshot.claims or {}

    def reason(pod: Pod) -> str:
        if not classes:
            return "uses a PersistentVolumeClaim" if pod.claims else ""
        for name in pod.claims:
            storage_class = claims.get((pod.namespace, name))
            if storage_class is None:
                return f"storage class of claim {name} is unknown, so it counts as protected"
            if storage_class in classes:
                return f"claim {name} has protected storage class {storage_class}"
        return ""

    return reason


def _without_pdb(budgets: tuple[DisruptionBudget, ...] | None) -> Reason:
    def reason(pod: Pod) -> str:
        if budgets is None:
            return "PDBs are unknown, so it counts as having none"
        return "" if any(surely_covers(each, pod) for each in budgets) else "no PDB selects it"

    return reason


def covers(budget: DisruptionBudget, pod: Pod) -> bool:
    """Tell whether a PDB selects a pod: same namespace, labels match; no selector selects nothing.

    One that could not be read may count for more pods than it selects.
    """
    here = budget.namespace in (EVERY_NAMESPACE, pod.namespace)
    return here and budget.selector is not None and budget.selector.matches(pod.labels)


def surely_covers(budget: DisruptionBudget, pod: Pod) -> bool:
    """Tell whether a PDB that could be read selects a pod."""
    return not budget.problem and covers(budget, pod)


def _too_young(pod: Pod, cluster: Cluster, minimum: float) -> str:
    if pod.started is None:
        return "has not started"
    age = (cluster.now - pod.started).total_seconds()
    return f"started {age:.0f} s ago, less than {minimum:.0f} s" if age < minimum else ""
