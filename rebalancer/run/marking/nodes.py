"""The nodes of a cluster, read once for rules and marks alike."""

from dataclasses import dataclass, field
from functools import cached_property

from rebalancer.cluster.node import Node
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.errors import ClusterError
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import MarkedNode
from rebalancer.kube.node_marks import NODES, NodeObject
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import Page, items_of
from rebalancer.untrusted.documents import decode_json

#: For all pages of the list together.
_SECONDS = 60.0


@dataclass(frozen=True)
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

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """The nodes by their names."""
        return {each.name: each for each in self.nodes}

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
        decoded = decode_json(page, Page[NodeObject])
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
