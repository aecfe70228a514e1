"""A live run that steers: permissions are checked and old marks removed before it, its own marks after it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import ClusterError, MarksLeft
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Halt, Halted, Permit, always
from rebalancer.kube.leftover_marks import SteeringMarks
from rebalancer.kube.marks import Keys, Mark
from rebalancer.kube.permissions import HOLDING, STEERING, demand_node_writes
from rebalancer.kube.run_marks import RunMarks
from rebalancer.policy.steering import AVOID_KEY, avoid_keys
from rebalancer.run.leftovers import any_mark, clear_leftovers, expired
from rebalancer.run.live import LiveCluster, LiveSink, new_run
from rebalancer.run.live_steer import LiveSteer, in_words
from rebalancer.run.receivers import Receivers
from rebalancer.run.work import Work

#: For all access reviews together.
_REVIEW_SECONDS = 30.0
#: How long after the deadline marks expire: for the last requests, for taking marks off, and for clocks that differ.
_EXPIRY_SLACK_SECONDS = 120.0


def prepare(cluster: LiveCluster, work: Work, permit: Permit) -> None:
    """Make sure that a run that steers may write to nodes, and that no marks of another run are left there.

    Raises:
        Forbidden, ClusterError: as `demand_permissions`; nodes cannot be listed.
        MarksLeft: marks of another run stay.
    """
    demand_permissions(cluster, work)
    _clear_up_before(cluster, work, permit)


def demand_permissions(cluster: LiveCluster, work: Work) -> None:
    """Make sure that a run that steers or holds nodes may write to them, before it does anything else.

    Raises:
        Forbidden: the permission is missing; the message has the rule to add.
        ClusterError: the API server does not say.
    """
    if work.policy.steering or work.hold:
        deadline = Deadline.after(_REVIEW_SECONDS, cluster.retry_policy.clock)
        purpose = STEERING if work.policy.steering else HOLDING
        demand_node_writes(cluster.client, cluster.retry_policy, deadline, purpose)


def _clear_up_before(cluster: LiveCluster, work: Work, permit: Permit) -> None:
    """Take off the marks that earlier runs have left on nodes; while such marks stay nothing is evicted.

    With the Lease no other run is at work, so all marks go; without it only those that have expired.

    Raises:
        MarksLeft: marks stay.
        ClusterError: nodes cannot be listed.
    """
    if work.policy.steering:
        keys = Keys.of(work.policy.steering.key)
        problems = clear_leftovers(cluster.client, SteeringMarks(keys, _is_over(permit)), ended_by(permit)).problems
        if problems:
            raise MarksLeft(f"soft taints of another run stay on nodes, and nothing was evicted: {in_words(problems)}")


def clear_up_unsteered(cluster: LiveCluster, work: Work, snapshot: Snapshot, permit: Permit) -> tuple[str, ...]:
    """Take off the marks of earlier steered runs if this run does not steer; return a warning if that fails."""
    keys = Keys.of(AVOID_KEY)
    if work.policy.steering or not any(_is_steered(node, keys) for node in snapshot.nodes):
        return ()
    try:
        problems = clear_leftovers(cluster.client, SteeringMarks(keys, _is_over(permit)), ended_by(permit)).problems
    except ClusterError as error:
        return (f"nodes carry soft taints of a steered run, and could not be looked at: {error}",)
    return (
        (f"soft taints stay on nodes (`rebalancer unmark` takes them off): {in_words(problems)}",) if problems else ()
    )


def _is_steered(node: Node, keys: Keys) -> bool:
    """Return whether a node carries a mark; with other keys than the usual ones its annotation says so."""
    return node.avoided or any(taint.key in keys for taint in node.taints)


@contextmanager
def steering(
    cluster: LiveCluster,
    work: Work,
    nodes: Iterable[Node],
    sink: LiveSink,
    halt: Halt,
    permit: Permit,
) -> Iterator[LiveSteer | None]:
    """Yield what carries waves out, None without steering; in the end take all marks off, even after an error.

    Args:
        cluster: the API server.
        work: what the policy asks for.
        nodes: as they were when the cluster was read.
        sink: evicts; it is told of owners that are being deleted.
        halt: ends all waiting.
        permit: says whether no other run is at work.
    """
    wanted = work.policy.steering
    if wanted is None:
        yield None
        return
    lifetime = timedelta(seconds=halt.deadline.left() + _EXPIRY_SLACK_SECONDS)
    mark = Mark(new_run(), (), datetime.now(UTC) + lifetime)
    marks = RunMarks(cluster.client, Keys.of(wanted.key), mark, halt, _is_over(permit))
    receivers = Receivers(cluster.client, nodes, avoid_keys(wanted.key), halt.deadline.clock)
    steer = LiveSteer(cluster.client, marks, halt, sink.sleep, wanted, receivers, sink.closures)
    try:
        yield steer
    finally:
        steer.end()


def left_behind(steer: LiveSteer | None) -> str:
    """Return a warning if marks of this run stay on nodes; empty if none do."""
    return f"soft taints stay on nodes: {in_words(steer.left)}" if steer and steer.left else ""


def _is_over(permit: Permit) -> Callable[[Mark], bool]:
    return expired if permit is always else any_mark


def ended_by(permit: Permit) -> Callable[[], None]:
    """Return what stops a write, by raising, once the permit has ended."""

    def check() -> None:
        if reason := permit():
            raise Halted(f"not asked for: {reason}")

    return check
