"""Nodes that are kept empty, on a live cluster: held when a run has emptied them, released when that has expired."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.cluster.taints import PREFER_NO_SCHEDULE
from rebalancer.errors import ClusterError
from rebalancer.eviction.holding import Held
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Halt, Permit
from rebalancer.kube.hold_marks import HoldMark, held
from rebalancer.kube.leftover_marks import HoldMarks, clear_leftovers, past
from rebalancer.kube.node_marks import NodeMarks
from rebalancer.kube.run_marks import CONFLICTS
from rebalancer.policy.steering import HOLD_KEY
from rebalancer.run.live import LiveCluster, new_run
from rebalancer.run.live_steer import LiveSteer, in_words
from rebalancer.run.steered import ended_by
from rebalancer.run.work import Work

_LOG = logging.getLogger(__name__)

#: To hold one node.
_SECONDS = 15.0
#: An annotation has whole seconds; a node is held for no less than was asked.
_ALMOST_ONE_SECOND = timedelta(microseconds=999_999)


class LiveHolder:
    """Holds nodes by soft taints (a `rebalancer.eviction.holding.Holder`).

    Args:
        client: the API server.
        halt: no node is held once it has come.
        duration: how long a node is held.
        recount: called with each node, whose taints have changed.
    """

    def __init__(self, client: Client, halt: Halt, duration: timedelta, recount: Callable[[str], None]) -> None:
        self._writer = NodeMarks(client, replace(CONFLICTS, stop=halt.signalled), halt.check)
        self._clock = halt.deadline.clock
        self._duration = duration
        self._recount = recount
        self._run = new_run()

    def hold(self, node: str) -> Held:
        """Set the taint and the annotation; what goes wrong is in the answer."""
        until = (datetime.now(UTC) + self._duration + _ALMOST_ONE_SECOND).replace(microsecond=0)
        mark = partial(held, mark=HoldMark(self._run, until))
        self._recount(node)
        try:
            self._writer.change(node, mark, Deadline.after(_SECONDS, self._clock))
        except ClusterError as error:
            _LOG.warning("node %s was emptied, and is not held: %s", node, error)
            return Held(node, until, str(error))
        _LOG.info("node %s is held empty until %s", node, until)
        return Held(node, until)


def holder(cluster: LiveCluster, work: Work, halt: Halt, steer: LiveSteer | None) -> LiveHolder | None:
    """Return what holds the nodes that a run empties; None if they are not held."""
    if work.hold is None:
        return None
    return LiveHolder(cluster.client, halt, work.hold, steer.recount if steer else lambda _: None)


def release_expired(cluster: LiveCluster, snapshot: Snapshot, permit: Permit) -> tuple[str, ...]:
    """Take the taints that have expired off nodes that earlier runs held; return a warning if some stay."""
    if not any(_is_due(node, snapshot.now) for node in snapshot.nodes):
        return ()
    try:
        problems = clear_leftovers(cluster.client, HoldMarks(past), ended_by(permit)).problems
    except ClusterError as error:
        return (f"nodes are held no longer than until now, and could not be looked at: {error}",)
    if not problems:
        return ()
    return (f"soft taints that have expired stay on nodes (`rebalancer unmark` takes them off): {in_words(problems)}",)


def _is_due(node: Node, now: datetime) -> bool:
    """Return whether something of a hold is on a node and nothing says that it is still of use."""
    is_tainted = any(each.key == HOLD_KEY and each.effect == PREFER_NO_SCHEDULE for each in node.taints)
    is_in_use = node.held_until is not None and node.held_until > now
    return (is_tainted or node.held_until is not None) and not is_in_use
