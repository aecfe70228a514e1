"""Work on a live cluster: connect once, then run as many cycles as wanted."""

import logging
import time

from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.cycle import run_cycle
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.eviction.holding import Holder
from rebalancer.eviction.steering import Steer
from rebalancer.eviction.verdict import Failed, Granted, Refused, Unknown
from rebalancer.kube.halt import Halt, Permit, always
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.report.document import Circumstances
from rebalancer.report.words import text
from rebalancer.run import holding, live, policies, steered
from rebalancer.run.interruption import Interruption
from rebalancer.run.look import Look, look_at
from rebalancer.run.options import Options
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.work import Finished, Work, plan

_LOG = logging.getLogger(__name__)


def connect(options: Options, telemetry: Telemetry, retry_policy: RetryPolicy | None = None) -> live.LiveCluster:
    """Find the API server; no request is sent.

    Raises:
        NoCredentials: no cluster is configured.
    """
    return live.open_cluster(options.kubeconfig, options.context, retry_policy, telemetry.request, options.client)


def cycle(
    cluster: live.LiveCluster,
    options: Options,
    work: Work,
    interruption: Interruption,
    telemetry: Telemetry,
    permit: Permit = always,
    look: Look | None = None,
) -> Finished:
    """Read the cluster as it is now, and evict the pods that the policy picks; a dry run only plans.

    Args:
        cluster: the way to the API server.
        options: dry run or not, and the deadline.
        work: what the policy asks for.
        interruption: once evictions may begin, a signal only stops the evictions.
        telemetry: reports what happens.
        permit: asked before every eviction and before every retry.
        look: at the cluster, if it was read already; the deadline counts from its time.

    Raises:
        ClusterError: the cluster cannot be read.
        MarksLeft: soft taints of another run cannot be taken off.
        Interrupted: a signal came before anything was evicted.
    """
    if not options.dry_run:
        steered.prepare(cluster, work, permit)
    look = look or look_at(cluster, options, work, telemetry)
    if options.dry_run:
        left = look.cluster(work)
        circumstances = Circumstances(True, cluster.description, "wall", work.warnings)
        return Finished(_plan(left, work, telemetry), left, circumstances)
    halt = Halt(options.deadline, cluster.retry_policy.clock, permit, look.taken_at, cluster.client.ending)
    interruption.then(halt.signal)
    telemetry.signs.evicting(work.policy.max_total, halt.deadline.left)
    return _live(cluster, work, look, halt, permit, telemetry)


def _live(
    cluster: live.LiveCluster, work: Work, look: Look, halt: Halt, permit: Permit, telemetry: Telemetry
) -> Finished:
    sink = live.LiveSink(cluster, work.policy.grace_period_seconds, halt)
    left = look.cluster(work)
    litter = steered.clear_up_unsteered(cluster, work, look.snapshot, permit)
    litter += holding.release_expired(cluster, look.snapshot, permit)
    events = live.EventLog(cluster.client, halt, failures=work.policy.eviction_failure_event_notification)
    with steered.steering(cluster, work, look.snapshot.nodes, sink.sleep, halt, permit) as steer:
        ledger = _evict(work, sink, events, left, telemetry, steer, holding.holder(cluster, work, halt, steer))
    with telemetry.stage("events"):
        problem = events.close()
    for notice in sink.closures.notices():
        _LOG.warning("%s", notice)
    marks = steered.left_behind(steer)
    extra = (*_no_limits(work), ledger.stopped, *sink.closures.notices(), problem, *litter, marks)
    extra += (_unforeseen(ledger, look, work),) if sink.is_denied and not halt.reason else ()
    warnings = (*work.warnings, *filter(None, extra))
    return Finished(ledger, left, Circumstances(False, cluster.description, "wall", warnings), bool(marks))


def _plan(left: Cluster, work: Work, telemetry: Telemetry) -> Ledger:
    with telemetry.stage("plan"):
        return plan(left, work, telemetry.observe, telemetry.around)


def _evict(
    work: Work,
    sink: live.LiveSink,
    events: live.EventLog,
    left: Cluster,
    telemetry: Telemetry,
    steer: Steer | None,
    holder: Holder | None,
) -> Ledger:
    """Run the strategies."""

    def observe(entry: Entry) -> None:
        _log_verdict(entry)
        telemetry.observe(entry)
        events.observe(entry)

    limits, traced = policies.limits(work.policy), telemetry.sink(sink)
    with telemetry.stage("evict"):
        return run_cycle(left, work.plans, limits, traced, time.perf_counter, observe, telemetry.around, steer, holder)


def warn_of_no_limits(options: Options, work: Work) -> None:
    """Warn at the start that nothing limits a live run: at the end it would be too late."""
    if not options.dry_run:
        for warning in _no_limits(work):
            _LOG.warning("%s", warning)


def _log_verdict(entry: Entry) -> None:
    what = f"{entry.pod.namespace}/{entry.pod.name} on {entry.pod.node} ({entry.strategy}: {text(entry.because)})"
    match entry.verdict:
        case Granted():
            _LOG.info("evicted %s", what)
        case Refused(cause):
            _LOG.debug("refused by %s (%s): %s", cause.code.value, text(cause), what)
        case Unknown(error):
            _LOG.warning("perhaps evicted: %s: %s", what, error)
        case Failed(error):
            _LOG.warning("not evicted: %s: %s", what, error)


def _no_limits(work: Work) -> tuple[str, ...]:
    if policies.limits(work.policy):
        return ()
    return ("the policy sets no limit on evictions (maxNoOfPodsToEvictTotal, ...PerNode, ...PerNamespace)",)


def _unforeseen(ledger: Ledger, look: Look, work: Work) -> str:
    """Name the pods that went in place of others which the API server did not let go."""
    planned = {entry.pod.key for entry in plan(look.cluster(work), work).evictions}
    extra = [f"{entry.pod.namespace}/{entry.pod.name}" for entry in ledger.evictions if entry.pod.key not in planned]
    return f"evicted in place of others, a dry run would not have listed them: {', '.join(extra)}" if extra else ""
