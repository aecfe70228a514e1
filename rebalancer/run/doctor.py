"""What an operator checks by hand before runs are trusted, each with its cure: `rebalancer doctor`.

Nothing is changed.  Whether something may be done is asked of the API server (SelfSubjectAccessReview); what cannot be
read is said, and is no fault of the cluster.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.resources import CPU, PODS
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.pdbs import DisruptionBudgets
from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client
from rebalancer.kube.leases import Lease, Leases
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import HoldMarks, SteeringMarks, expired
from rebalancer.kube.node_marks import NODES, NodeObject
from rebalancer.kube.permissions import WRITE_VERBS, may
from rebalancer.kube.pressure_marks import PressureMarks
from rebalancer.kube.tries import Deadline
from rebalancer.kube.wire.pages import METRICS_KINDS, Items, resource_of
from rebalancer.policy.moving import AVOID_KEY
from rebalancer.policy.usage import KUBERNETES_METRICS
from rebalancer.report.layout import count, listed
from rebalancer.run.memory import MemorySource
from rebalancer.run.options import LeaseOptions
from rebalancer.run.steered import record_of, writes
from rebalancer.run.work import Work
from rebalancer.untrusted.documents import Unreadable, decode_json

FINE, WRONG, UNKNOWN = "fine", "wrong", "unknown"
_OLDEST_SAMPLE = timedelta(minutes=5)
_SKEW = timedelta(seconds=30)
_TRIED = range(29, 37)  # minor versions that the README calls supported
_FULL = 95.0
_NAMED = 5
_SECONDS = 10.0
_WORKLOADS = (("/apis/apps/v1/deployments", "Deployment"), ("/apis/batch/v1/cronjobs", "CronJob"))
_LARGEST = 256 << 20
_OURS = "kube-rebalancer/"
_IMAGE = re.compile(r'"image": "[^"]*descheduler')


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    check: str
    state: str  # FINE, WRONG, or UNKNOWN where it could not be read
    says: str
    cure: str = ""  # what to do; empty where nothing has to be done


def of_snapshot(snapshot: Snapshot, work: Work, report: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the objects of the cluster show, and a dry run of the policy on it."""
    cluster = Cluster(snapshot)
    errors = [f"{run['strategy']}: {run['error']}" for run in report["strategies"] if run["error"]]
    fine = f"{len(report['strategies'])} run; {count(len(report['evictions']), 'pod')} would go"
    if report["skipped"]:
        yield Finding("strategies", UNKNOWN, f"none was tried: {report['skipped']}")
    else:
        yield _none_of("strategies", errors, "", "mend the policy or its source of usage", fine)
    yield _metrics(snapshot, work)
    yield _budgets(snapshot)
    yield from _owners(cluster)
    yield _room(cluster)
    names = {pod.spec.placement.scheduler for pod in snapshot.pods} - {"default-scheduler"}
    if snapshot.scheduler_configuration is not None or work.scheduler.warnings:
        yield Finding("scheduler", FINE, "configured")
    elif names:
        cure = "give its configuration with --scheduler-config"
        yield Finding("scheduler", UNKNOWN, f"pods name other schedulers: {listed(sorted(names), _NAMED)}", cure)
    else:
        yield Finding("scheduler", FINE, "its defaults are assumed")


def _either(check: str, wrong: str, cure: str, fine: str) -> Finding:
    return Finding(check, WRONG, wrong, cure) if wrong else Finding(check, FINE, fine)


def _none_of(check: str, names: Sequence[str], says: str, cure: str, fine: str) -> Finding:
    return _either(check, f"{says}{listed(names, _NAMED)}" if names else "", cure, fine)


def _metrics(snapshot: Snapshot, work: Work) -> Finding:
    if not work.policy.sources:
        return Finding("usage", FINE, "the policy asks for none")
    is_read = {KUBERNETES_METRICS} if snapshot.node_metrics is not None else set()  # a file may have metrics-server's
    asked = sorted(work.policy.sources - is_read)
    if asked:
        return Finding("usage", UNKNOWN, f"{listed(asked, _NAMED)} is asked by the strategies: see there")
    taken = [each.taken for each in snapshot.node_metrics or () if each.taken]
    if not taken:
        return Finding("usage", WRONG, "metrics-server says nothing", "install metrics-server, or look at its log")
    age = snapshot.now - min(taken)
    says = f"{len(taken)} of {len(snapshot.nodes)} nodes, the oldest sample {age.total_seconds():.0f} s old"
    return _either("usage", says if age > _OLDEST_SAMPLE else "", "look at metrics-server's log", says)


def _budgets(snapshot: Snapshot) -> Finding:
    if snapshot.budgets is None:
        return Finding("PDBs", UNKNOWN, "they were not read")
    budgets, stuck = DisruptionBudgets(snapshot.budgets), []
    selecting = {id(each): each for each in map(budgets.selecting, snapshot.pods)}  # pods share these lists
    in_use = {(each.namespace, each.name) for found in selecting.values() for each in found}
    for each in snapshot.budgets:
        if not (each.problem or (each.namespace, each.name) in in_use):
            continue
        counts = f"{each.current_healthy} healthy, {each.desired_healthy} wanted"
        why = each.problem or (counts if each.observed else "its controller has not seen its present form")
        stuck += [] if each.disruptions_allowed else [f"{each.namespace}/{each.name} ({why})"]
    fine = f"{len(snapshot.budgets)}, each that has pods allows an eviction now"
    return _none_of("PDBs", stuck, "allow nothing now: ", "these hold up runs, and drains of nodes too", fine)


def _owners(cluster: Cluster) -> Iterator[Finding]:
    """Yield what owners of several pods and owners of a single one lack."""
    pods = cluster.snapshot.pods
    budgets = DisruptionBudgets(cluster.snapshot.budgets or (), pods)
    bare: Counter[str] = Counter()
    single = []
    for pod in pods:
        if pod.controller and pod.controller.kind in ("ReplicaSet", "StatefulSet"):
            name = f"{pod.namespace}/{pod.controller.kind}/{pod.controller.name}"
            bare[name] += not budgets.selecting(pod)
            if pod.controller.kind == "ReplicaSet" and cluster.siblings(pod.controller.uid) == 1:
                single.append(name)
    several = sorted(name for name, number in bare.items() if number > 1)
    cure = "a PDB says how many may go at once; without one only relief spares most of an owner's pods"
    found = _none_of("owners without a PDB", several, f"{len(several)}: ", cure, "none with several pods")
    yield Finding(found.check, UNKNOWN, "PDBs were not read") if cluster.snapshot.budgets is None else found
    cure = "minReplicas: 2 leaves them alone; trust.restart moves those that can be moved without a gap"
    yield _none_of("single replicas", sorted(single), f"{len(single)}: ", cure, "none")


def _room(cluster: Cluster) -> Finding:
    full = []
    for node in cluster.ready_nodes:
        free, offered = cluster.free(node), node.allocatable.get(CPU, 0)
        if free(PODS) <= 0 or (offered and 100 * (1 - free(CPU) / offered) >= _FULL):
            full.append(node.name)
    fine = f"each of {len(cluster.ready_nodes)} ready nodes has some"
    return _none_of("room", full, "no room by requests on ", "lower requests (`recommend`), or add nodes", fine)


def of_server(cluster: Client, lease: LeaseOptions, work: Work) -> Iterator[Finding]:
    """Yield what the API server says: version, clock, permissions, the Lease, the breaker, marks, and others."""
    yield from _version(cluster)
    looks: dict[str, Callable[[], Finding]] = {
        "permissions": partial(_permissions, cluster, lease, work),
        "Lease": partial(_lease, cluster, lease),
        **({"breaker": partial(_breaker, cluster, lease)} if work.trust else {}),
        "marks on nodes": partial(_marks, cluster, lease, work),
        "other deschedulers": partial(_others, cluster, f"{lease.resource_namespace}/{lease.resource_name}"),
    }
    for check, look in looks.items():
        try:
            yield look()
        except ClusterError as error:
            yield Finding(check, UNKNOWN, str(error))


def _version(cluster: Client) -> Iterator[Finding]:
    before = datetime.now(UTC)
    answer = cluster.look("/version")
    found: dict[str, Any] = {}
    with suppress(Unreadable):  # it may be the page of a proxy
        found = decode_json(answer.body, dict[str, Any]) if answer.is_success else found
    minor = "".join(filter(str.isdigit, str(found.get("minor", ""))))
    says = f"{cluster.connection.server} is {found.get('gitVersion', 'of an unknown version')}"
    known = minor.isdecimal() and int(minor) in _TRIED
    cure = "" if known else f"tried with 1.{_TRIED.start} to 1.{_TRIED.stop - 1}: look at a dry run first"
    yield Finding("version", FINE if known else UNKNOWN, says, cure)
    skew = timedelta(0)
    with suppress(ValueError):  # without a date, or with one that cannot be read
        skew = abs(parsedate_to_datetime(answer.headers.get("date", "")).replace(tzinfo=UTC) - before)
    says = f"differs by {skew.total_seconds():.0f} s"
    yield _either("clock", says if skew > _SKEW else "", "set the clock", says)


#: What a live run does, whatever the policy: verb, API group, resource.
_ALWAYS = (("create", "", "pods/eviction"), ("get", "", "pods"), ("create", "events.k8s.io", "events"))
_LEASES = ("coordination.k8s.io", "leases")


def _permissions(cluster: Client, lease: LeaseOptions, work: Work) -> Finding:
    where, clock = lease.resource_namespace, cluster.retry_policy.clock
    kinds = sorted({"Node", "Pod", *work.needed_kinds, *work.helpful_kinds})
    wanted: list[tuple[str, ...]] = [("list", *resource_of(kind)) for kind in kinds]
    # A role may be for the one Lease and the one ConfigMap alone; what is created has no name yet.
    wanted += [*_ALWAYS, ("create", *_LEASES, where)]
    wanted += [(verb, *_LEASES, where, lease.resource_name) for verb in ("get", "update")]
    wanted += [(verb, each.group, each.resource) for each in writes(work) for verb in WRITE_VERBS]
    if work.trust:
        wanted += [(verb, "", "configmaps", where, lease.memory) for verb in ("get", "update")]
    if KUBERNETES_METRICS in work.policy.sources:
        wanted += [("list", *resource_of(kind)) for kind in METRICS_KINDS]
    missing = [each[:3] for each in wanted if not may(cluster, Deadline.after(_SECONDS, clock), *each)]
    denied = ", ".join(f"{verb} {resource}{f'.{group}' if group else ''}" for verb, group, resource in missing)
    rules = (f'{{apiGroups: ["{group}"], resources: [{name}], verbs: [{verb}]}}' for verb, group, name in missing)
    cure = f"add to the role: {', '.join(rules)}"
    fine = "this identity may do all that a live run by this policy does"
    return _either("permissions", f"a live run may not {denied}" if missing else "", cure, fine)


def _breaker(cluster: Client, options: LeaseOptions) -> Finding:
    now = datetime.now(UTC)
    found = MemorySource.of(cluster, options).read(now)
    if found.problem:
        return Finding("memory", WRONG, found.problem, "`rebalancer memory clear` begins anew")
    if breaker := found.known(now).breaker:
        cure = "look why replacements fail; `rebalancer breaker reset` closes it"
        return Finding("breaker", WRONG, f"open: {breaker.why}", cure)
    if found.paused:
        return Finding("breaker", WRONG, found.paused, "`rebalancer resume` ends the pause")
    return Finding("breaker", FINE, "closed, and no pause of all runs")


def _lease(cluster: Client, options: LeaseOptions) -> Finding:
    name = options.resource_name
    found = Leases(cluster, options.resource_namespace, name, _SECONDS).read()
    if not found or not found.holder:
        return Finding("Lease", FINE, f"nobody holds {name}")
    held = f"{name} is held by {found.holder}: a run is at work"
    left = f"{name} is left over from {found.holder}: the next run waits for a moment, and takes it"
    return Finding("Lease", FINE, held if _is_renewed(found) else left)


def _is_renewed(lease: Lease) -> bool:
    return lease.renewed is not None and datetime.now(UTC) - lease.renewed <= timedelta(seconds=lease.duration) + _SKEW


def _marks(cluster: Client, lease: LeaseOptions, work: Work) -> Finding:
    marked, steering = [], work.policy.steering
    kind = SteeringMarks.of(steering.key if steering else AVOID_KEY, record_of(cluster, lease).read())
    for node in read_list(cluster, NODES, lambda: Items("Node", NodeObject, NodeObject.marked)).items:
        marks = (each.read(node) for each in (SteeringMarks, HoldMarks, PressureMarks))
        if any(mark and not expired(mark) for mark in marks):  # a run at work, a hold or `rebalancer mark` needs them
            continue
        found = (*kind.taints(node), *(x for x in kind.others(node) if str(x.get("key")).startswith(_OURS)))
        ours = [f"{x['key']}={x.get('value', '')}" for x in found]
        marked += [f"{node.name} ({', '.join(ours)})"] if ours else []
    cure = "`rebalancer unmark` takes them off"
    return _none_of("marks on nodes", sorted(marked), "taints that no run needs are on ", cure, "none is left over")


def _others(cluster: Client, own: str) -> Finding:
    names: list[str] = []
    unread: list[str] = []
    for path, kind in _WORKLOADS:
        try:
            items = decode_json(cluster.get(path, largest=_LARGEST), _Workloads).items or ()
        except (ClusterError, ValueError):
            unread.append(f"{kind}s")
            continue
        found = [each.get("metadata") or {} for each in items if not _rests(each) and _IMAGE.search(json.dumps(each))]
        names += [f"{kind} {each.get('namespace', '')}/{each.get('name', '')}" for each in found]
    try:
        lease = Leases(cluster, "kube-system", "descheduler", _SECONDS).read()
    except ClusterError:
        lease = None
        unread.append("its Lease")
    if lease and lease.holder and own != "kube-system/descheduler" and _is_renewed(lease):
        names.append(f"Lease kube-system/descheduler of {lease.holder}")
    if unread and not names:
        return Finding("other deschedulers", UNKNOWN, f"could not be read: {', '.join(unread)}")
    return _none_of("other deschedulers", sorted(names), "", "suspend it, or both move the same pods", "none")


def _rests(workload: Mapping[str, Any]) -> object:
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    return (spec.get("suspend") and not status.get("active")) or spec.get("replicas") == 0


class _Workloads(msgspec.Struct):
    items: list[dict[str, Any]] | None = None
