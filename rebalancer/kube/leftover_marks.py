"""Marks that no run uses any more, taken off the nodes where they were found."""

from collections.abc import Callable, Iterable
from functools import partial

from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.many_nodes import on_each
from rebalancer.kube.marks import Keys, Mark, MarkedNode, Wanted, unmarked
from rebalancer.kube.node_marks import NodeMarks
from rebalancer.kube.run_marks import CONFLICTS, Problems

#: Returns whether no run uses a mark any more.
IsOver = Callable[[Mark], bool]


def clear(
    client: Client,
    nodes: Iterable[MarkedNode],
    keys: Keys,
    deadline: Deadline,
    is_over: IsOver,
    gate: Callable[[], None] = lambda: None,
) -> Problems:
    """Take marks off these nodes, except marks in use by then, and return what went wrong, by the node's name.

    Args:
        client: the API server.
        nodes: the nodes that had a mark when they were listed; each is read again.
        keys: of the taints; taints with the keys that a mark names are taken off too.
        deadline: for all nodes together.
        is_over: returns whether no run uses a mark any more; a mark that cannot be read is always taken off.
        gate: called before every write; raises to stop it.
    """
    writer = NodeMarks(client, CONFLICTS, gate)
    change = partial(cleared, keys=keys, is_over=is_over)
    return on_each((each.name for each in nodes), lambda name: writer.change(name, change, deadline))


def cleared(node: MarkedNode, keys: Keys, is_over: IsOver) -> Wanted:
    """Return the node as it should be: without a mark, or unchanged where the mark is in use."""
    if is_in_use(node, is_over):
        return Wanted(node.taints or (), node.note)
    return unmarked(node, keys)


def is_in_use(node: MarkedNode, is_over: IsOver) -> bool:
    """Return whether a run may still rely on the node's mark."""
    return node.mark is not None and not is_over(node.mark)
