"""The nodes that may be marked, as they are read, and how they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rebalancer.cluster.node import Node
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client
from rebalancer.kube.halt import Deadline, Halt
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import MarkedNode, Wanted
from rebalancer.kube.node_marks import CONFLICTS, NODES, NodeMarks, NodeObject, Problems, on_each, patch
from rebalancer.kube.pressure_marks import Occupied, PressureMarks, standing
from rebalancer.kube.run_marks import SET_SECONDS
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import ListPage, items_of
from rebalancer.marking.evaluation import Marks
from rebalancer.marking.rules import Signs
from rebalancer.untrusted.documents import decode_json

#: For all pages of the list together.
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Changes:
    """How nodes should be marked by one run.

    Attributes:
        run: its name.
        signs: what a marked node carries.
        marks: by node.
        earlier: labels and taints that were ours before, as KEY=VALUE, by the record.
    """

    run: str
    signs: Signs
    marks: Marks
    earlier: frozenset[str] = frozenset()

    def texts(self) -> frozenset[str]:
        """Return the labels and taints that nodes will carry, as KEY=VALUE."""
        rules = {each[0].rule for each in self.marks.values()}
        return frozenset(str(sign.on(rule)) for sign in (self.signs.label, self.signs.taint) if sign for rule in rules)

    def wanted(self, node: MarkedNode) -> Wanted:
        """Return a node as it should be.

        Raises:
            Occupied: others have set a label or taint of the same key.
        """
        ours = PressureMarks(self.signs, self.earlier)
        pressures = self.marks.get(node.name)
        return ours.off(node) if pressures is None else ours.on(node, self.run, pressures)

    def due(self, carried: Mapping[str, MarkedNode]) -> Mapping[str, str]:
        """Return what has to be done, by node: `marked`, `changed`, `renewed` or `cleared`."""
        found = {name: self._change(node) for name, node in carried.items()}
        return {name: change for name, change in found.items() if change}

    def problems(self, carried: Mapping[str, MarkedNode]) -> Problems:
        """Return the nodes that cannot be marked, and why."""
        return {name: problem for name, node in carried.items() if (problem := self._problem(node))}

    def _problem(self, node: MarkedNode) -> ClusterError | None:
        try:
            self.wanted(node)
        except Occupied as error:
            return error
        return None

    def _change(self, node: MarkedNode) -> str:
        if self._problem(node) is None and not patch(node, self.wanted(node)):
            return ""
        if node.name not in self.marks:
            return "cleared"
        before = [each.rule for each in standing(node)]
        if not before:
            return "marked"
        return "renewed" if before == [each.rule for each in self.marks[node.name]] else "changed"


def write(client: Client, changes: Changes, due: Mapping[str, str], halt: Halt) -> Problems:
    """Write the changes that are due, and return what went wrong, by the node's name.

    Each node is written in one piece, so that a signal, or an error on another node, leaves none half marked.
    """
    writer = NodeMarks(client, replace(CONFLICTS, stop=halt.signalled), halt.check)
    deadline = Deadline.after(SET_SECONDS)
    return on_each(due, lambda name: writer.change(name, changes.wanted, deadline))


@dataclass(frozen=True, slots=True)
class SeenNodes:
    """Nodes as they were read at one time.

    Attributes:
        nodes: as rules and sources see them.
        carried: what each carries, by name.
        warnings: about nodes that could not be read.
    """

    nodes: tuple[Node, ...]
    carried: dict[str, MarkedNode] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def that_take_part(self, selector: LabelSelector) -> tuple[Node, ...]:
        """Return the nodes that pods may be scheduled to: selected, Ready and not cordoned."""
        return tuple(
            each
            for each in self.nodes
            if each.ready and not each.unschedulable and not each.problem and selector.matches(each.labels)
        )


class _Pages:
    """Collects both views of the nodes from the same pages."""

    def __init__(self) -> None:
        self.nodes = Collection().collector("Node")
        self.carried: dict[str, MarkedNode] = {}

    def add_page(self, page: bytes) -> str:
        decoded = decode_json(page, ListPage[NodeObject])
        self.carried |= {each.metadata.name: each.marked() for each in items_of(decoded, "Node")}
        return self.nodes.add_page(page)


def see_nodes(client: Client) -> SeenNodes:
    """Read all nodes.

    Raises:
        ClusterError: they cannot be listed.
    """
    try:
        pages = read_list(client, NODES, _Pages, deadline=Deadline.after(_SECONDS))
        return SeenNodes(pages.nodes.unique(), pages.carried, tuple(pages.nodes.warnings))
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
