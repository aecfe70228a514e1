"""Runs that take turns: a live run holds the Lease while it evicts, and waits for another that holds it."""

import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rebalancer.errors import Forbidden
from rebalancer.kube.halt import Permit, always
from rebalancer.kube.leases import Leases
from rebalancer.run.leadership import REQUEST_SECONDS, Leadership, Timing
from rebalancer.run.live import LiveCluster
from rebalancer.run.options import LeaseOptions, Options

_LOG = logging.getLogger(__name__)

#: The descheduler's durations, for a loop that holds the Lease from cycle to cycle.
LEADER = Timing(137.0, 107.0, 26.0)
#: For one cycle: short, so that the next run need not wait long for the Lease of a run that was killed.
ONE_CYCLE = Timing(15.0, 10.0, 2.0)


def timing_of(options: LeaseOptions, usual: Timing) -> Timing:
    """Return the given durations; `usual` if none is given, else the descheduler's for those that are missing."""
    given = (options.lease_duration, options.renew_deadline, options.retry_period)
    if given == (None, None, None):
        return usual
    defaults = (LEADER.duration, LEADER.deadline, LEADER.retry)
    return Timing(*(default if value is None else value for value, default in zip(given, defaults, strict=True)))


def candidate(cluster: LiveCluster, options: LeaseOptions, usual: Timing) -> Leadership:
    """Return the part of this process in taking turns; raise UsageError for durations that do not go together."""
    timing = timing_of(options, usual)
    seconds = min(REQUEST_SECONDS, timing.deadline / 2)
    leases = Leases(cluster.client, options.resource_namespace, options.resource_name, seconds)
    identity = f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4()}"  # which only this process has
    return Leadership(leases, timing, identity, wait=cluster.client.ending.wait)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of this process.

    Attributes:
        permit: returns why no further write is allowed; empty while one is.
        skipped: why nothing may be done; empty if it is our turn.
        alarm: what the reader of the report must not overlook.
    """

    permit: Permit = always
    skipped: str = ""
    alarm: str = ""


@contextmanager
def turn(
    cluster: LiveCluster,
    options: Options,
    permit: Permit | None = None,
    sleep: Callable[[float], None] = time.sleep,
    doing: str = "evicting",
) -> Iterator[Turn]:
    """Wait for the Lease, for `lease_wait` at most, and hold it while this is entered.

    A dry run needs no turn, and a leader has it already.  Without the permission for the Lease it is our turn all the
    same, with an alarm that says what others are not kept from `doing`: the descheduler's own manifests do not grant
    it, and start this program.
    """
    lease = options.lease
    if options.dry_run or permit is not None or lease.no_lease:
        yield Turn(permit or always)
        return
    leadership = candidate(cluster, lease, ONE_CYCLE)
    with ExitStack() as stack:
        stack.callback(leadership.release)
        ours = Turn(leadership.permit)
        try:
            if not leadership.acquire(lease.lease_wait, sleep):
                other = leadership.holder or "another"
                ours = Turn(skipped=f"{other} is at work: it holds the lease {leadership.name}")
        except Forbidden as error:
            alarm = f"other runs are not kept from {doing} at the same time (--no-lease says that they may): {error}"
            _LOG.warning("%s", alarm)
            ours = Turn(alarm=alarm)
        yield ours
