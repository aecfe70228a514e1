"""Runs that take turns: a live run holds the Lease while it evicts, and waits for another that holds it."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rebalancer.errors import Forbidden
from rebalancer.kube.halt import Permit, always
from rebalancer.kube.leases import Leases
from rebalancer.run.leadership import REQUEST_SECONDS, Leadership, Timing, new_identity
from rebalancer.run.live import LiveCluster
from rebalancer.run.options import LeaseOptions, Options

_LOG = logging.getLogger(__name__)

#: The descheduler's durations, for a loop that holds the Lease from cycle to cycle.
LEADER = Timing(137.0, 107.0, 26.0)
#: For one cycle: short, so that the next run need not wait long for the Lease of a run that was killed.
ONE_CYCLE = Timing(15.0, 10.0, 2.0)


def timing_of(options: LeaseOptions, usual: Timing) -> Timing:
    """Return the durations that the options give; `usual` if they give none, else the descheduler's for those missing.

    Raises:
        UsageError: they do not go together.
    """
    given = (options.lease_duration, options.renew_deadline, options.retry_period)
    if given == (None, None, None):
        return usual
    defaults = (LEADER.duration, LEADER.deadline, LEADER.retry)
    return Timing(*(default if value is None else value for value, default in zip(given, defaults, strict=True)))


def candidate(cluster: LiveCluster, options: LeaseOptions, usual: Timing) -> Leadership:
    """Return the part of this process in taking turns.

    Raises:
        UsageError: the durations do not go together.
    """
    timing = timing_of(options, usual)
    seconds = min(REQUEST_SECONDS, timing.deadline / 2)
    leases = Leases(cluster.client, options.resource_namespace, options.resource_name, seconds)
    return Leadership(leases, timing, new_identity(), wait=cluster.client.ending.wait)


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

    Raises:
        ClusterError: the API server cannot be reached, or the Lease's namespace does not exist.
    """
    lease = options.lease
    if options.dry_run or permit is not None or lease.no_lease:
        yield Turn(permit or always)
        return
    leadership = candidate(cluster, lease, ONE_CYCLE)
    try:
        yield _taken(leadership, lease.lease_wait, sleep, doing)
    finally:
        leadership.release()


def _taken(leadership: Leadership, seconds: float, sleep: Callable[[float], None], doing: str) -> Turn:
    try:
        held = leadership.acquire(seconds, sleep)
    except Forbidden as error:
        alarm = f"other runs are not kept from {doing} at the same time (--no-lease says that they may): {error}"
        _LOG.warning("%s", alarm)
        return Turn(alarm=alarm)
    if held:
        return Turn(leadership.permit)
    return Turn(skipped=f"{leadership.holder or 'another'} is at work: it holds the lease {leadership.name}")
