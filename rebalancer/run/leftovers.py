"""Marks that no run needs any more, left on nodes by runs that were killed or lost the API server at their end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.hold_marks import HoldMark
from rebalancer.kube.leftover_marks import Kind, clear
from rebalancer.kube.lists import Items, read_list
from rebalancer.kube.marks import Mark, MarkedNode
from rebalancer.kube.node_marks import NODES, NodeObject
from rebalancer.kube.pressure_marks import PressureMark
from rebalancer.kube.run_marks import Problems

#: For all nodes together.
CLEAR_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was found on nodes.

    Attributes:
        over: nodes whose marks no run needs; the marks were taken off, except on nodes with problems.
        in_use: nodes whose marks a run may still need; the marks stay.
        problems: why a mark could not be taken off, by the node's name.
        claims: in words, the taints that stay since only an annotation says that they are ours.
    """

    over: tuple[MarkedNode, ...] = ()
    in_use: tuple[MarkedNode, ...] = ()
    problems: Problems = field(default_factory=dict)
    claims: tuple[str, ...] = ()


def expired(mark: Mark) -> bool:
    """Return whether a mark has expired, so that no run needs it any more."""
    return mark.expires <= datetime.now(UTC)


def faded(mark: PressureMark) -> bool:
    """Return whether all rules that mark a node have expired."""
    return mark.until <= datetime.now(UTC)


def past(mark: HoldMark) -> bool:
    """Return whether a node is held no longer."""
    return mark.expires <= datetime.now(UTC)


def any_mark(_: Mark | PressureMark | HoldMark) -> bool:
    """Return True for every mark: while we hold the Lease no other run is at work."""
    return True


def clear_leftovers(
    client: Client, kind: Kind, gate: Callable[[], None] = lambda: None, *, dry_run: bool = False
) -> Leftovers:
    """Take off the marks of runs that are over.

    Args:
        client: the API server.
        kind: of the marks.
        gate: called before every write; raises to prevent it.
        dry_run: whether to find them only, without a write.

    Raises:
        ClusterError: nodes cannot be listed.
    """
    deadline = Deadline.after(CLEAR_SECONDS)
    found = _find(client, kind, deadline)
    in_use = tuple(each for each in found if kind.is_in_use(each))
    over = tuple(each for each in found if each not in in_use)
    problems = {} if dry_run else clear(client, over, kind, deadline, gate)
    return Leftovers(over, in_use, problems, tuple(claim for each in over if (claim := kind.claim(each))))


def _find(client: Client, kind: Kind, deadline: Deadline) -> list[MarkedNode]:
    try:
        nodes = read_list(client, NODES, lambda: Items("Node", NodeObject, NodeObject.marked), deadline=deadline).items
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
    return [each for each in nodes if kind.is_on(each)]
