"""Whether nodes that replacements are sent to still take pods, wave by wave.

The plan goes by the nodes as they were read at the beginning.  Meanwhile one may have been deleted or cordoned, may not
be Ready any more, or others may have given it a taint, which says that they want it to receive nothing.

An example: n3 had the taint `gpu:NoSchedule` when the run began, and has `drain:PreferNoSchedule` as well now.  It
receives nothing more in this run; with `gpu:NoSchedule` alone it would.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from rebalancer.clock import Clock
from rebalancer.cluster.node import Node
from rebalancer.errors import ClusterError
from rebalancer.kube.answers import NotFound
from rebalancer.kube.client import Client, path_of
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.node_marks import NODES
from rebalancer.kube.wire.objects import NodeWire, node
from rebalancer.untrusted.documents import decode_json

#: To look at one node.
_SECONDS = 10.0


class Receivers:
    """The nodes as they were read at the beginning, to compare with what they are now.

    Args:
        client: the API server.
        nodes: as they were.
        keys: of our own soft taints, which come and go.
        clock: a monotonic clock, in seconds.
        closed: nodes that take no pods in this run, and why.
    """

    def __init__(
        self,
        client: Client,
        nodes: Iterable[Node],
        keys: Collection[str],
        clock: Clock,
        closed: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._closed = closed
        self._client = client
        self._before = {each.name: each for each in nodes}
        self._keys = keys
        self._clock = clock

    def why_closed(self, name: str) -> str:
        """Return why a node takes no pods any more; empty if it does.

        Raises:
            ClusterError: it cannot be looked at.
        """
        if reason := self._closed.get(name):
            return reason
        try:
            now = self._now(name)
        except NotFound:
            return "it is gone"
        if now.unschedulable:
            return "it is cordoned"
        if not now.ready:
            return "it is not Ready"
        new = [taint for taint in now.taints if taint.key not in self._keys and taint not in self._before[name].taints]
        return f"it has a new taint, {new[0]}" if new else ""

    def _now(self, name: str) -> Node:
        path = NODES + path_of(name)
        body = self._client.get(path, deadline=Deadline.after(_SECONDS, self._clock))
        try:
            return node(decode_json(body, NodeWire))
        except ValueError as error:
            raise ClusterError(f"the API server does not answer {path} with a Node: {error}") from error
