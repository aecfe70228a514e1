"""A run from options to report, on a file or on a live cluster; and the report of a file without a policy."""

import gc
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from rebalancer.cluster.cluster import Cluster, Measure
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, MEMORY, PODS, Resources
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import RebalancerError, SourceError, UsageError
from rebalancer.kube.wire.scheduler_inputs import SCHEDULER_KINDS
from rebalancer.policy.values import Policy
from rebalancer.report.document import Finished, timestamp
from rebalancer.run import policies
from rebalancer.run.interruption import Interruption
from rebalancer.run.memory import NOTHING, Recalled, recalled, recollect, told
from rebalancer.run.options import Deliver, Options, Outcome
from rebalancer.run.progress import Progress
from rebalancer.run.snapshot_file import SnapshotFile, read_snapshot_file
from rebalancer.run.work import Work, no_secret, plan, publish, work_maker
from rebalancer.usage.metrics_server import Metrics

if TYPE_CHECKING:
    from rebalancer.kube.tries import RetryPolicy  # the client of the API server is not needed offline
    from rebalancer.run.live_run import Person
    from rebalancer.usage.providers import Providers  # importing it costs a quarter of a second


_LOG = logging.getLogger(__name__)
#: What the report of a cluster shows: these resources, so many of the fullest nodes, so many of the largest of a kind.
_RESOURCES = (CPU, MEMORY)
_SHOWN = 10
_LARGEST = 5
_MEBIBYTE = 1 << 20


def run(
    options: Options,
    person: "Person | None",
    interruption: Interruption,
    retry_policy: "RetryPolicy | None" = None,
    progress: Progress | None = None,
    deliver: Deliver = lambda outcome: outcome.exit_code,
) -> Outcome:
    """Run one cycle, and return its outcome, with the exit code that `deliver` returns.

    A person is asked before the first eviction.  The interruption is entered, and told what a signal does once
    evictions may have begun.  `deliver` shows the outcome; after that the metrics are exported, which may take long.
    """
    options.demand_no_conflict()
    progress = progress or Progress()
    live, text = not options.dry_run and options.snapshot is None, options.policy_text
    work = work_maker(options)(policies.read_policy(options.policy, text, strict=options.strict, live=live))
    for warning in work.warnings:
        _LOG.warning("policy %s: %s", options.policy, warning)
    if options.snapshot is not None:
        with progress.stage("read"):
            file = read_snapshot_file(options.snapshot)
        outcome = _run_offline(options, file, work, progress)
        return replace(outcome, exit_code=deliver(outcome), work=work)
    from rebalancer.run.live_run import run_live  # noqa: PLC0415  the API client is not needed offline

    return replace(run_live(options, work, person, interruption, retry_policy, progress, deliver), work=work)


def _run_offline(options: Options, file: SnapshotFile, work: Work, progress: Progress) -> Outcome:
    snapshot = file.snapshot(datetime.now(UTC))
    now, clock = _clock_of(file, snapshot, options.now)
    warnings = (*work.warnings, *_gaps(file.seen, work))
    if options.chosen:
        options.chosen.demand(snapshot.at(now))
    cluster = work.cluster(work.seen(snapshot.at(now)), _usage_beside_file(work.policy, snapshot))
    # A file that says nothing of the memory stands for a cluster where nothing was moved.
    noted = file.recorded
    found = NOTHING if noted.memory is None else recalled(noted.memory, "of the snapshot", now, noted.memory)
    found = Recalled(None, noted.memory_problem) if noted.memory_problem else found
    recollection = recollect(found, work.trust, cluster.snapshot) if work.trust else None
    gc.freeze()  # all of it stays in use: Python need not look at it again and again
    try:
        with progress.stage("plan"):
            ledger = plan(cluster, work, around=progress.around, recollection=recollection)
    finally:
        gc.unfreeze()
    warnings += tuple(told(recollection, ledger))
    return publish(Finished(ledger, cluster, True, {"file": options.snapshot}, clock, warnings), options)


def _usage_beside_file(policy: Policy, snapshot: Snapshot) -> Measure:
    def read_metrics() -> Metrics:
        if snapshot.node_metrics is None:
            raise SourceError(
                "the snapshot holds no NodeMetrics; `rebalancer snapshot` writes them, or add what "
                "`kubectl get nodes.metrics.k8s.io,pods.metrics.k8s.io -A -o json` prints"
            )
        return Metrics(snapshot.node_metrics, snapshot.pod_metrics)

    @cache
    def providers() -> "Providers":  # when a strategy first asks for a source
        from rebalancer.usage.providers import Providers  # noqa: PLC0415  the import is slow, and few runs need it

        return Providers(policy, read_metrics, no_secret, service_account=None)

    return lambda cluster, wanted: providers().measure(cluster, wanted)


def _gaps(seen: AbstractSet[str], work: Work) -> Iterator[str]:
    if "Pod" not in seen:
        yield "the snapshot holds no pods: `rebalancer snapshot` writes all kinds"
    if "PodDisruptionBudget" not in seen:
        yield "the snapshot holds no PodDisruptionBudgets: pods that one protects are not recognised"
    unread = work.helpful_kinds - seen
    for what, kinds in (
        ("where the scheduler puts pods", unread & SCHEDULER_KINDS),
        ("what others scale", unread - SCHEDULER_KINDS),
    ):
        if kinds:
            problem = f"the snapshot holds no {', '.join(sorted(kinds))}; `rebalancer snapshot` writes all kinds"
            yield f"{what} is unknown in part: {problem}"


def _clock_of(file: SnapshotFile, snapshot: Snapshot, given: str | None = None) -> tuple[datetime, str]:
    if given is not None:
        return policies.given_time(given), "option"
    if file.recorded.now is not None:
        return file.recorded.now, "snapshot"
    newest = snapshot.newest()
    return (newest, "newest") if newest else (snapshot.now, "wall")


def cluster_report(path: str, where: Mapping[str, str | None]) -> dict[str, Any]:
    """Return what a cluster file shows without a policy, and what each preset would do."""
    file = read_snapshot_file(path)
    snapshot = file.snapshot(datetime.now(UTC))
    snapshot = snapshot.at(_clock_of(file, snapshot)[0])
    cluster = Cluster(snapshot)
    used = {each.name: each.usage for each in snapshot.node_metrics or ()}
    nodes: list[dict[str, Any]] = [
        {
            "name": node.name,
            "requested": _percents(cluster.used(node), node),
            "used": _percents(used[node.name], node) if node.name in used else None,
        }
        for node in snapshot.nodes
    ]
    return {
        "apiVersion": "rebalancer/v1",
        "kind": "ClusterReport",
        "now": timestamp(snapshot.now),
        "cluster": dict(where),
        "nodes": nodes,
        "peaks": list(_peaks(cluster, nodes)),
        "room": list(_room(cluster)),
        "presets": [_preset(name, path, file) for name in policies.presets()],
        "warnings": [] if snapshot.node_metrics else ["no usage was read: is there a metrics-server?"],
    }


def _percents(amounts: Resources, node: Node) -> dict[str, float]:
    offered = node.allocatable
    return {name: round(100 * amounts.get(name, 0) / offered[name], 1) for name in _RESOURCES if offered.get(name)}


def _peaks(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    usage = {(each.namespace, each.name): each.usage for each in cluster.snapshot.pod_metrics or ()}
    known = [each for each in nodes if each["used"]]
    for resource in _RESOURCES:
        fullest = sorted(known, key=lambda each: (-each["used"].get(resource, 0.0), each["name"]))[:_SHOWN]
        points: defaultdict[str, float] = defaultdict(float)
        for node in filter(None, (cluster.node(each["name"]) for each in fullest)):
            offered = node.allocatable.get(resource, 0)
            for pod in cluster.active_pods_on(node) if offered else ():
                of = pod.controller
                owner = f"{pod.namespace}/{of.kind}/{of.name}" if of else str(pod)
                points[owner] += 100 * usage.get(pod.key, {}).get(resource, 0) / offered / len(fullest)
        for owner, share in sorted(points.items(), key=lambda pair: (-pair[1], pair[0]))[:_LARGEST]:
            yield {"resource": resource, "owner": owner, "points": round(share, 1)}


def _room(cluster: Cluster) -> Iterator[dict[str, Any]]:
    pods = (pod for pod in cluster.snapshot.pods if pod.active)
    kinds = Counter((pod.spec.requests.get(CPU, 0), pod.spec.requests.get(MEMORY, 0)) for pod in pods)
    free = [cluster.free(node) for node in cluster.ready_nodes if not node.unschedulable]
    for cpu, memory in sorted(kinds, reverse=True)[:_LARGEST]:
        nodes = sum(each(CPU) >= cpu and each(MEMORY) >= memory and each(PODS) > 0 for each in free)
        requests = f"{cpu}m cpu, {memory // _MEBIBYTE} Mi memory"
        yield {"requests": requests, "pods": kinds[cpu, memory], "nodesWithRoom": nodes}


def _preset(name: str, path: str, file: SnapshotFile) -> dict[str, Any]:
    """Return what a preset would do; usage is not asked of any other source than the file."""
    options = Options(policy=name, snapshot=path, dry_run=True)
    try:
        work = work_maker(options)(policies.read_policy(name, strict=False))
        if others := [each.source for each in work.policy.metrics_providers if each.source != "KubernetesMetrics"]:
            raise UsageError(f"it asks {', '.join(others)}, which is not asked here")
        report = _run_offline(options, file, work, Progress()).report
    except RebalancerError as error:
        return {"name": name, "evictions": None, "says": str(error).splitlines()[0]}
    errors = [run["error"] for run in report["strategies"] if run["error"]]
    says = errors[:1] or [run["summary"] for run in report["strategies"] if run["nodes"] or run["evicted"]]
    told = "; ".join(filter(None, says)) or report["skipped"] or "nothing"
    return {"name": name, "evictions": len(report["evictions"]), "says": told}
