"""What the rules of `rebalancer mark` measure on nodes: by a query of their own, or as the policy measures usage."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from math import isfinite

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import StrategyError
from rebalancer.marking.evaluation import PressureReading, RuleAnswer
from rebalancer.marking.rules import MarkingRules, PressureRule, measured_utilization
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.policy.values import Policy
from rebalancer.usage.promql import NodeNames, PromQL, UsageWindow
from rebalancer.usage.providers import Providers

_LOG = logging.getLogger(__name__)

#: Rules may go by any number: only what is not a number is left out.
_LEAST = "-Inf"

Values = Mapping[str, float]


def answers(
    rules: MarkingRules, policy: Policy, providers: Providers, nodes: tuple[Node, ...], now: datetime
) -> Mapping[str, RuleAnswer]:
    """Return the answer to each rule, by its name; a source that fails is an answer with its problem.

    Args:
        rules: the rules.
        policy: says how the resources are measured that rules name.
        providers: the policy's sources.
        nodes: the nodes that take part.
        now: the time of the evaluation.
    """
    wanted = measured_utilization(policy)
    found = {name: _answer(rule, wanted, providers, nodes, now) for name, rule in rules.rules.items()}
    for name, each in found.items():
        if each.problem:
            _LOG.warning("rule %s is not known: %s", name, each.problem)
    return found


def _answer(
    rule: PressureRule,
    wanted: MetricsUtilization | None,
    providers: Providers,
    nodes: tuple[Node, ...],
    now: datetime,
) -> RuleAnswer:
    try:
        if rule.resource is None:
            return _queried(rule, providers.prometheus(now), nodes)
        if wanted is None:
            return RuleAnswer(problem="no strategy in the policy has metricsUtilization any more", source=PROMETHEUS)
        return _measured(rule.resource, wanted, providers, nodes, now)
    except StrategyError as error:
        return RuleAnswer(problem=str(error), source=wanted.origin if rule.resource and wanted else PROMETHEUS)


def _measured(
    resource: str, wanted: MetricsUtilization, providers: Providers, nodes: tuple[Node, ...], now: datetime
) -> RuleAnswer:
    figures = providers.measure(Cluster(Snapshot(now=now, nodes=nodes, pods=())), _about_nodes(wanted))
    known = [
        (node.name, NodeUtilization(node, figures.nodes[node.name])) for node in nodes if node.name in figures.nodes
    ]
    percents = {name: percent for name, each in known if (percent := each.percent(resource)) is not None}
    if figures.nodes and not percents:
        raise StrategyError(f"{wanted.origin} does not measure {resource}")
    readings = {name: PressureReading.of(percent) for name, percent in percents.items()}
    return RuleAnswer(readings, missing=figures.missing, warnings=figures.warnings)


def _about_nodes(wanted: MetricsUtilization) -> MetricsUtilization:
    """Return the question about nodes alone; marking itself decides what missing samples mean."""
    prometheus = wanted.prometheus and wanted.prometheus.model_copy(update={"pods": {}})
    return wanted.model_copy(update={"when_missing": "fail", "min_fresh_nodes": 0, "prometheus": prometheus})


def _queried(rule: PressureRule, promql: PromQL, nodes: Iterable[Node]) -> RuleAnswer:
    """Return what the query of a rule says about nodes.

    Without `for` the present value counts.  With it, three more queries are sent: how many values there are in that
    time, the lowest and the highest of them.  A node needs a present value, and values for half of the steps (see
    `window`).  Example, `for: 5m`: 20 steps of 15 s, so a node needs 10 values; it is above 80 if the lowest is.

    Raises:
        SourceError: there is no answer, or one that cannot be used, like two series for one node.
    """
    names = NodeNames(nodes, rule.node)
    strangers: dict[str, None] = {}

    def values(query: str) -> Values:
        found, about_strangers = names.values(promql.ask(query), query)
        strangers.update({about_strangers: None} if about_strangers else {})
        return found

    present = values(rule.query)
    missing = {node: f"the value is {value:g}" for node, value in present.items() if not isfinite(value)}
    usable = {node: value for node, value in present.items() if isfinite(value)}
    if rule.lasting:
        readings, sparse = _over(UsageWindow.over(rule.lasting, _LEAST), rule.query, usable, values)
    else:
        readings, sparse = {node: PressureReading.of(value) for node, value in usable.items()}, {}
    return RuleAnswer(readings, missing=missing | sparse, warnings=(*strangers, *promql.warnings))


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
