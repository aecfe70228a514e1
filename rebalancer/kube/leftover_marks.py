"""Marks that no run needs any more, left on nodes by runs that were killed or lost the API server at their end."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from rebalancer.errors import ClusterError
from rebalancer.kube import hold_marks, pressure_marks
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.hold_marks import HoldMark
from rebalancer.kube.lists import Items, read_list
from rebalancer.kube.marks import SOFT, Keys, Mark, MarkedNode, Wanted, unmarked
from rebalancer.kube.node_marks import NODES, NodeMarks, NodeObject, on_each
from rebalancer.kube.pressure_marks import PressureMark
from rebalancer.kube.run_marks import CONFLICTS, Problems
from rebalancer.marking.rules import Signs

#: For all nodes together.
CLEAR_SECONDS = 60.0


class KindOfMark(Protocol):
    """One kind of marks on nodes."""

    def is_on(self, node: MarkedNode) -> bool:
        """Return whether a node carries such a mark, or a part of one."""
        ...

    def is_in_use(self, node: MarkedNode) -> bool:
        """Return whether a run may still rely on the node's mark."""
        ...

    def off(self, node: MarkedNode) -> Wanted:
        """Return the node without such a mark."""
        ...

    def claim(self, node: MarkedNode) -> str:
        """Return what stays on a node since its annotation alone says that it is ours; empty for nothing."""
        ...


@dataclass(frozen=True, slots=True)
class SteeringMarks:
    """The marks of steered runs.

    Attributes:
        keys: of the taints.
        is_over: returns whether no run uses a mark any more; a mark that cannot be read is used by none.
    """

    keys: Keys
    is_over: Callable[[Mark], bool]

    def is_on(self, node: MarkedNode) -> bool:
        """Return whether there is an annotation or a taint of ours."""
        return node.is_marked(self.keys)

    def is_in_use(self, node: MarkedNode) -> bool:
        """Return whether a run may still rely on the node's mark."""
        return node.mark is not None and not self.is_over(node.mark)

    def off(self, node: MarkedNode) -> Wanted:
        """Return the node without a mark, whichever run has set it."""
        return unmarked(node, self.keys)

    def claim(self, node: MarkedNode) -> str:
        """Return the taints that stay since the annotation alone says that they are ours."""
        found = [f"{each.get('key')}={each.get('value')}:{SOFT}" for each in node.claimed(self.keys)]
        return f"node {node.name} keeps {', '.join(found)}, which no run has noted as its own" if found else ""


@dataclass(frozen=True, slots=True)
class PressureMarks:
    """The marks of `rebalancer mark`.

    Attributes:
        signs: the labels and taints that are ours without an annotation, too.
        is_over: returns whether a mark has expired; one that cannot be read has.
        earlier: the labels and taints that the record says were ours, as KEY=VALUE.
    """

    signs: Signs
    is_over: Callable[[PressureMark], bool]
    earlier: Collection[str] = ()

    def is_on(self, node: MarkedNode) -> bool:
        """Return whether there is an annotation, a label or a taint of ours."""
        return pressure_marks.is_pressed(node, self.signs, self.earlier)

    def is_in_use(self, node: MarkedNode) -> bool:
        """Return whether the mark has not expired."""
        mark = pressure_marks.mark_of(node)
        return mark is not None and not self.is_over(mark)

    def off(self, node: MarkedNode) -> Wanted:
        """Return the node without a mark of pressure."""
        return pressure_marks.cleared(node, self.signs, self.earlier)

    def claim(self, node: MarkedNode) -> str:
        """Return what stays since the annotation alone says that it is ours."""
        return pressure_marks.claim(node, self.signs, self.earlier)


@dataclass(frozen=True, slots=True)
class HoldMarks:
    """The marks of nodes that are kept empty.

    Attributes:
        is_over: returns whether a mark has expired; one that cannot be read has.
    """

    is_over: Callable[[HoldMark], bool]

    def is_on(self, node: MarkedNode) -> bool:
        """Return whether there is an annotation or a taint of ours."""
        return hold_marks.is_held(node)

    def is_in_use(self, node: MarkedNode) -> bool:
        """Return whether the mark has not expired."""
        mark = hold_marks.mark_of(node)
        return mark is not None and not self.is_over(mark)

    def off(self, node: MarkedNode) -> Wanted:
        """Return the node without such a mark."""
        return hold_marks.released(node)

    def claim(self, node: MarkedNode) -> str:  # noqa: ARG002  of the interface
        """Return nothing: these taints have one key."""
        return ""


def clear(
    client: Client,
    nodes: Iterable[MarkedNode],
    kind: KindOfMark,
    deadline: Deadline,
    gate: Callable[[], None] = lambda: None,
) -> Problems:
    """Take marks off these nodes, except marks in use by then, and return what went wrong, by the node's name.

    Args:
        client: the API server.
        nodes: the nodes that had a mark when they were listed; each is read again.
        kind: of the marks.
        deadline: for all nodes together.
        gate: called before every write; raises to stop it.
    """
    writer = NodeMarks(client, CONFLICTS, gate)
    change = partial(cleared, kind=kind)
    return on_each((each.name for each in nodes), lambda name: writer.change(name, change, deadline))


def cleared(node: MarkedNode, kind: KindOfMark) -> Wanted:
    """Return the node as it should be: without a mark, or unchanged where the mark is in use."""
    return Wanted(node.taints or (), node.note) if kind.is_in_use(node) else kind.off(node)


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
    client: Client, kind: KindOfMark, gate: Callable[[], None] = lambda: None, *, dry_run: bool = False
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


def _find(client: Client, kind: KindOfMark, deadline: Deadline) -> list[MarkedNode]:
    try:
        nodes = read_list(client, NODES, lambda: Items("Node", NodeObject, NodeObject.marked), deadline=deadline).items
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
    return [each for each in nodes if kind.is_on(each)]
