"""The answer of one query about nodes: the usage of one resource, and the nodes whose usage is unknown.

For each resource Prometheus is asked for:

1. the time of each present sample, if there is a window or a limit on the age;
2. the number of values in the window, if there is a window;
3. the value at `sourceQuantile`, which counts for a node as a source of pods;
4. the value at `destinationQuantile`, which counts for a node as a destination.

Without a window, 3 and 4 are the same present value, asked for once.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.policy.usage import NodeQuery, PrometheusUsage
from rebalancer.usage.amounts import amount, usable
from rebalancer.usage.node_names import NodeNames
from rebalancer.usage.promql import Ask
from rebalancer.usage.sample_age import instant, stale
from rebalancer.usage.window import Window, timestamp

Values = Mapping[str, float]


class NodeColumn:
    """The usage of one resource by node.

    Attributes:
        resource: its name.
        warnings: what the reader of the report should know.

    Raises:
        SourceError: there is no answer, or one that cannot be used.
    """

    def __init__(
        self, ask: Ask, resource: str, wanted: PrometheusUsage, max_age: timedelta | None, cluster: Cluster
    ) -> None:
        self._ask = ask
        self.resource = resource
        self._query: NodeQuery = wanted.nodes[resource]
        self._names = NodeNames(cluster.snapshot.nodes, self._query.node)
        self._window = Window.of(wanted)
        self._now = cluster.now
        self._max_age = max_age
        self.warnings: tuple[str, ...] = ()
        text = self._query.query
        #: When the present sample of each node was taken; None where that is not asked for.
        self._taken = self._values(timestamp(text)) if self._window or max_age is not None else None
        self._counts = self._values(self._window.count(text)) if self._window else {}
        self._usual = self._at(wanted.source_quantile)
        self._peaks = self._at(wanted.destination_quantile)

    def usual(self, node: Node) -> int | None:
        """Return the usage that counts for the node as a source of pods; None if it is unknown."""
        return self._amount(self._usual, node)

    def peak(self, node: Node) -> int | None:
        """Return the usage that counts for the node as a destination; None if it is unknown."""
        return self._amount(self._peaks, node)

    @property
    def taken(self) -> datetime | None:
        """When the oldest present sample of a node was taken; None where that is not asked for, or there is none."""
        return min(map(instant, (self._taken or {}).values()), default=None)

    def why_not(self, node: Node) -> str:
        """Return why the usage of a node is unknown; empty if it is known."""
        name, resource = node.name, self.resource
        if (name not in self._usual and self._window is None) or (self._taken is not None and name not in self._taken):
            return f"no sample of {resource}"
        if self._taken is not None:
            reason = stale(self._now - instant(self._taken[name]), self._max_age)
            if reason:
                return f"{resource}: {reason}"
        if self._window is not None and self._counts.get(name, 0) * 2 < self._window.steps:
            return f"{resource}: {self._counts.get(name, 0):g} of {self._window.steps} values in the window"
        if self.usual(node) is None or self.peak(node) is None:
            return self._unusable(node)
        return ""

    def _unusable(self, node: Node) -> str:
        value = self._usual[node.name]
        if usable(value):
            return f"{self.resource}: the node's {self._query.base} is unknown"
        return f"{self.resource} is {value:g}"

    def _at(self, quantile: float) -> Values:
        text = self._query.query
        return self._values(text if self._window is None else self._window.quantile(text, quantile))

    def _values(self, query: str) -> Values:
        values, strangers = self._names.values(self._ask(query), query)
        if strangers:
            self.warnings = (f"{self.resource}: {strangers}",)
        return values

    def _amount(self, values: Values, node: Node) -> int | None:
        value = values.get(node.name)
        return None if value is None else amount(value, self.resource, self._query, node)
