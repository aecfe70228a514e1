"""Soft taints of a live run on nodes: of steering, and of nodes that are kept empty.

A live run that steers checks its permissions and removes old marks before it, and its own marks after it.  Nodes that a
run has emptied are held, and released when that has expired.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE
from rebalancer.errors import ClusterError
from rebalancer.eviction.steering import Held, Hold
from rebalancer.kube.client import Client
from rebalancer.kube.marks import HoldMark, HoldMarks, KindOfMark, Mark, MarkT, SteeringMarks, any_mark, expired
from rebalancer.kube.node_marks import CONFLICTS, NodeMarks, Problems, clear_leftovers
from rebalancer.kube.permissions import HOLDING, RESTARTING, STEERING, WritePurpose, demand_writes
from rebalancer.kube.run_marks import RunMarks, RunRecord
from rebalancer.kube.tries import Deadline, Halt, Permit, always
from rebalancer.policy.moving import AVOID_KEY, HOLD_KEY, avoid_keys
from rebalancer.run.leadership import leases_of
from rebalancer.run.live import new_run
from rebalancer.run.live_steer import LiveSteer, in_words
from rebalancer.run.options import LeaseOptions
from rebalancer.run.watch import Watch
from rebalancer.run.work import Work

_LOG = logging.getLogger(__name__)
_LONGEST_BELIEVED = timedelta(days=1)  # how far ahead an annotation of a node is believed where there is no record
#: How long after the deadline marks expire: for the last requests, for taking marks off, and for clocks that differ.
_EXPIRY_SLACK_SECONDS = 120.0
_HOLD_SECONDS = 15.0  # to hold one node
#: An annotation has whole seconds; a node is held for no less than was asked.
_ALMOST_ONE_SECOND = timedelta(microseconds=999_999)


@dataclass(frozen=True, slots=True)
class CleanUp:
    """What a run found of others on nodes when it began, and what is left of it."""

    record: RunRecord  # where runs are noted that may have left something
    permit: Permit  # says whether no other run is at work
    noted: tuple[Mark, ...] | None = ()  # those runs; None where the record cannot be read
    left: Problems = field(default_factory=dict)  # nodes whose marks of steering could not be taken off, and why
    told: tuple[str, ...] = ()  # what the reader of the report should know


def clear_up(client: Client, lease: LeaseOptions, work: Work, snapshot: Snapshot, permit: Permit) -> CleanUp:
    """Take off what other runs have left on nodes: marks of steering, and holds that have expired.

    With the Lease no other run is at work, so all marks of steering go; without it only those that have expired.  A run
    that steers looks for them whatever the snapshot shows, and ends where it cannot; others go on, and tell.
    """
    record, wanted, usual = record_of(client, lease), work.policy.steering, avoid_keys(AVOID_KEY)
    # With other keys than the usual ones the annotation of a node says that a run has steered.
    is_marked = any(each.avoided or any(x.key in usual for x in each.taints) for each in snapshot.nodes)
    noted = record.read() if wanted or is_marked else ()
    gate, left, told = Halt(permit=permit).check, dict[str, ClusterError](), list[str]()
    if wanted:
        found = clear_leftovers(client, SteeringMarks.of(wanted.key, noted), is_over(noted, permit), gate)
        left, told = dict(found.problems), list(found.claims)
        if left:
            told.append(f"nodes keep soft taints of another run, and receive no pods: {in_words(left)}")
        elif noted and not found.in_use:
            record.forget([each.run for each in noted if expired(each)])
    elif is_marked:
        told += _cleared(client, SteeringMarks.of(AVOID_KEY, noted), is_over(noted, permit), gate)
    if any(_is_due(node, snapshot.now) for node in snapshot.nodes):
        told += _cleared(client, HoldMarks(), expired, gate)
    return CleanUp(record, permit, noted, left, tuple(told))


def _cleared(
    client: Client, kind: KindOfMark[MarkT], is_over: Callable[[MarkT], bool], gate: Callable[[], None]
) -> tuple[str, ...]:
    try:
        found = clear_leftovers(client, kind, is_over, gate)
    except ClusterError as error:
        return (f"soft taints that earlier runs have left on nodes could not be looked at: {error}",)
    stay = f"soft taints stay on nodes (`rebalancer unmark` takes them off): {in_words(found.problems)}"
    return (*found.claims, *([stay] if found.problems else []))


def record_of(client: Client, lease: LeaseOptions) -> RunRecord:
    """Return the record of runs, in the Lease."""
    return RunRecord(leases_of(client, lease))


def writes(work: Work) -> tuple[WritePurpose, ...]:
    """Return what a live run writes besides evictions."""
    by_taints = (STEERING,) if work.policy.steering else (HOLDING,) if work.policy.hold else ()
    return (*by_taints, *((RESTARTING,) if work.trust and work.trust.restart else ()))


def demand_permissions(client: Client, work: Work) -> None:
    """Make sure that a run may write to nodes and Deployments, where it will, before it does anything else."""
    for purpose in writes(work):
        demand_writes(client, purpose)


def _is_due(node: Node, now: datetime) -> bool:
    """Return whether something of a hold is on a node and nothing says that it is still of use."""
    if node.held_until is not None:
        return node.held_until <= now
    return any(each.key == HOLD_KEY and each.effect == PREFER_NO_SCHEDULE for each in node.taints)


@contextmanager
def steering(watch: Watch, snapshot: Snapshot, before: CleanUp) -> Iterator[LiveSteer | None]:
    """Yield what carries waves out, None without steering; in the end take all marks off, even after an error."""
    client, halt, wanted = watch.client, watch.halt, watch.work.policy.steering
    if wanted is None:
        yield None
        return
    lifetime = timedelta(seconds=halt.deadline.left() + _EXPIRY_SLACK_SECONDS)
    mark = Mark(new_run(), (), datetime.now(UTC) + lifetime)
    kind, may_replace = SteeringMarks.of(wanted.key, before.noted), is_over(before.noted, before.permit)
    marks = RunMarks(client, kind, mark, halt, may_replace, note=before.record.note)
    barred = {name: f"it keeps a soft taint of another run: {error}" for name, error in before.left.items()}
    steer = LiveSteer(watch, marks, wanted, snapshot, barred)
    try:
        yield steer
    finally:
        steer.end()
        if marks.is_noted and not (steer.left or marks.doubted):
            before.record.forget([mark.run])


def is_over(noted: Iterable[Mark] | None, permit: Permit) -> Callable[[Mark], bool]:
    """Return what says of a mark that its run is over: with the Lease no other run is at work.

    Without it the record says until when a run may be; without that an annotation is believed for a day at most.
    """
    if permit is not always:
        return any_mark
    if noted is None:
        return lambda mark: expired(mark) or mark.expires > datetime.now(UTC) + _LONGEST_BELIEVED
    at_work = {each.run for each in noted if not expired(each)}
    return lambda mark: mark.run not in at_work


def holding(client: Client, halt: Halt, duration: timedelta, steer: LiveSteer | None) -> Hold:
    """Return what holds nodes by soft taints; where the run steers, its marks are counted anew on each."""
    writer, run = NodeMarks(client, replace(CONFLICTS, stop=halt.signalled), halt.check), new_run()

    def hold(node: str) -> Held:
        until = (datetime.now(UTC) + duration + _ALMOST_ONE_SECOND).replace(microsecond=0)
        if steer:
            steer.marks.recount(node)
        try:
            deadline = Deadline.after(_HOLD_SECONDS, halt.deadline.clock)
            writer.change(node, partial(HoldMarks().on, mark=HoldMark(run, until)), deadline)
        except ClusterError as error:
            _LOG.warning("node %s was emptied, and is not held: %s", node, error)
            return Held(node, until, str(error))
        _LOG.info("node %s is held empty until %s", node, until)
        return Held(node, until)

    return hold
