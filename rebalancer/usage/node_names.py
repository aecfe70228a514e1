"""Finds the node of the cluster that a series is about, by a label of the series.

Example: `instance="10.0.0.7:9100"` with `match: internalIP` is the node whose InternalIP is 10.0.0.7.
"""

import re
from collections.abc import Iterable, Mapping

from rebalancer.cluster.node import Node
from rebalancer.errors import SourceError
from rebalancer.policy.usage import NodeLabel
from rebalancer.usage.promql import VectorElement

_PORT = re.compile(r"(?<=.):\d+$")
_HOSTNAME_LABEL = "kubernetes.io/hostname"


def without_port(value: str) -> str:
    """Return a host without its port; an IPv6 address has a port only if it stands in brackets."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return _PORT.sub("", value) if value.count(":") == 1 else value


class NodeNames:
    """Finds nodes by the value of a label."""

    def __init__(self, nodes: Iterable[Node], by: NodeLabel) -> None:
        self._by = by
        self._names = {key: node.name for node in nodes if (key := _key(node, by.match))}

    def of(self, sample: VectorElement) -> str | None:
        """Return the name of the node that a series is about; None if that is not a node of the cluster."""
        return self._names.get(without_port(sample.metric.get(self._by.label, "")))

    def values(self, samples: Iterable[VectorElement], query: str) -> tuple[Mapping[str, float], str]:
        """Return the value for each node, and a warning about series that belong to no node; empty if there are none.

        Raises:
            SourceError: two series are about one node.
        """
        found: dict[str, VectorElement] = {}
        strangers: list[VectorElement] = []
        for sample in samples:
            name = self.of(sample)
            if name is None:
                strangers.append(sample)
            elif name in found:
                raise SourceError(
                    f"the query `{query.strip()}` gives two series for node {name}: {found[name]} and {sample}; "
                    f"aggregate them, for example with sum by ({self._by.label}) (...)"
                )
            else:
                found[name] = sample
        return {name: sample.value for name, sample in found.items()}, self._about(strangers)

    def _about(self, strangers: list[VectorElement]) -> str:
        if not strangers:
            return ""
        label = self._by.label
        value = strangers[0].metric.get(label)
        first = f"no label {label}" if value is None else f"{label} {value!r}"
        how = f"by {label} = {self._by.match}, the first has {first}"
        return f"{len(strangers)} series are about no node of the cluster {how}"


def _key(node: Node, match: str) -> str:
    if match == "internalIP":
        return node.addresses.get("InternalIP", "")
    if match == "hostname":
        return node.addresses.get("Hostname") or node.labels.get(_HOSTNAME_LABEL, "")
    return node.name
