"""What the query of a marking rule says about nodes.

Without `for` the present value counts.  With it, three more queries are sent: how many values there are in that time,
the lowest and the highest of them.  A node needs a present value, and values for half of the steps (see `window`).

Example, `for: 5m`: 20 steps of 15 s, so a node needs 10 values; it is above 80 if the lowest of them is.
"""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite

from rebalancer.cluster.node import Node
from rebalancer.marking.pressure import PressureReading, RuleAnswer
from rebalancer.marking.rules import PressureRule
from rebalancer.usage.node_names import NodeNames
from rebalancer.usage.promql import Ask
from rebalancer.usage.window import UsageWindow

#: Rules may go by any number: only what is not a number is left out.
_LEAST = "-Inf"

Values = Mapping[str, float]


def answer(ask: Ask, rule: PressureRule, nodes: Iterable[Node]) -> RuleAnswer:
    """Return the readings of a rule's query.

    Raises:
        SourceError: there is no answer, or one that cannot be used, like two series for one node.
    """
    names = NodeNames(nodes, rule.node)
    strangers: dict[str, None] = {}

    def values(query: str) -> Values:
        found, about_strangers = names.values(ask(query), query)
        strangers.update({about_strangers: None} if about_strangers else {})
        return found

    present = values(rule.query)
    missing = {node: f"the value is {value:g}" for node, value in present.items() if not isfinite(value)}
    usable = {node: value for node, value in present.items() if isfinite(value)}
    if not rule.lasting:
        values_now = {node: PressureReading.of(value) for node, value in usable.items()}
        return RuleAnswer(values_now, missing=missing, warnings=tuple(strangers))
    window = UsageWindow.over(rule.lasting, _LEAST)
    readings, sparse = _over(window, rule.query, usable, values)
    return RuleAnswer(readings, missing=missing | sparse, warnings=tuple(strangers))


def _over(
    window: UsageWindow, query: str, present: Values, values: Callable[[str], Values]
) -> tuple[dict[str, PressureReading], dict[str, str]]:
    """Return the readings over a window, and why a node has none though it has a present value."""
    counts, lowest, highest = (
        values(each) for each in (window.count(query), window.quantile(query, 0), window.quantile(query, 1))
    )
    sparse = {
        node: f"{counts.get(node, 0):g} of {window.steps} values in the time that `for` says"
        for node in present
        if counts.get(node, 0) * 2 < window.steps
    }
    known = [node for node in present if node not in sparse and node in lowest and node in highest]
    return {node: PressureReading(present[node], lowest[node], highest[node]) for node in known}, sparse
