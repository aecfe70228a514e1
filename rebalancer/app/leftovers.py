"""Marks that no run needs any more, left on nodes by runs that were killed or lost the API server at their end."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rebalancer.errors import ClusterError
from rebalancer.foreign.documents import decode_json
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.leftover_marks import IsOver, clear, is_in_use
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import Keys, Mark, MarkedNode
from rebalancer.kube.node_marks import NODES, NodeObject
from rebalancer.kube.run_marks import Problems
from rebalancer.wire.pages import Page, items_of

#: For all nodes together.
CLEAR_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was found on nodes.

    Attributes:
        over: nodes whose marks no run needs; the marks were taken off, except on nodes with problems.
        in_use: nodes whose marks a run may still need; the marks stay.
        problems: why a mark could not be taken off, by the node's name.
    """

    over: tuple[MarkedNode, ...] = ()
    in_use: tuple[MarkedNode, ...] = ()
    problems: Problems = field(default_factory=dict)


def expired(mark: Mark) -> bool:
    """Return whether a mark has expired, so that no run needs it any more."""
    return mark.expires <= datetime.now(UTC)


def any_mark(_: Mark) -> bool:
    """Return True for every mark: while we hold the Lease no other run is at work."""
    return True


def clear_leftovers(
    client: Client, keys: Keys, is_over: IsOver, gate: Callable[[], None] = lambda: None, *, dry_run: bool = False
) -> Leftovers:
    """Take off the marks of runs that are over.

    Args:
        client: the API server.
        keys: of the taints; taints with earlier keys are found through the marks' annotations, which name them.
        is_over: returns whether no run needs a mark any more.
        gate: called before every write; raises to prevent it.
        dry_run: whether to find them only, without a write.

    Raises:
        ClusterError: nodes cannot be listed.
    """
    deadline = Deadline.after(CLEAR_SECONDS)
    found = _find(client, keys, deadline)
    in_use = tuple(each for each in found if is_in_use(each, is_over))
    over = tuple(each for each in found if each not in in_use)
    problems = {} if dry_run else clear(client, over, keys, deadline, is_over, gate)
    return Leftovers(over, in_use, problems)


class _Nodes:
    """Collects the nodes that carry marks from the pages of a list."""

    def __init__(self, keys: Keys) -> None:
        self.marked: list[MarkedNode] = []
        self._keys = keys

    def add_page(self, page: bytes) -> str:
        decoded = decode_json(page, Page[NodeObject])
        nodes = [each.marked() for each in items_of(decoded, "Node")]
        self.marked += [each for each in nodes if each.is_marked(self._keys)]
        return decoded.token


def _find(client: Client, keys: Keys, deadline: Deadline) -> list[MarkedNode]:
    try:
        return read_list(client, NODES, lambda: _Nodes(keys), deadline=deadline).marked
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
