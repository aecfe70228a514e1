"""What the sources say about each rule."""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import StrategyError
from rebalancer.marking.pressure import Reading, RuleAnswer
from rebalancer.marking.rules import Rule
from rebalancer.marking.rules_file import measured_utilization
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.run.marking.work import MarkWork

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers

_LOG = logging.getLogger(__name__)


def answers(work: MarkWork, providers: "Providers", nodes: tuple[Node, ...], now: datetime) -> Mapping[str, RuleAnswer]:
    """Return the answer to each rule, by its name; a source that fails is an answer with its problem.

    Args:
        work: the policy and the rules.
        providers: the policy's sources.
        nodes: the nodes that take part.
        now: the time of the evaluation.
    """
    found = {name: _answer(work, rule, providers, nodes, now) for name, rule in work.rules.rules.items()}
    for name, each in found.items():
        if each.problem:
            _LOG.warning("rule %s is not known: %s", name, each.problem)
    return found


def _answer(work: MarkWork, rule: Rule, providers: "Providers", nodes: tuple[Node, ...], now: datetime) -> RuleAnswer:
    try:
        if rule.resource is None:
            return providers.answer(rule, nodes, now)
        return _measured(work, rule.resource, providers, nodes, now)
    except StrategyError as error:
        return RuleAnswer(problem=str(error), source=_source(work, rule))


def _source(work: MarkWork, rule: Rule) -> str:
    wanted = measured_utilization(work.policy)
    return wanted.origin if rule.resource and wanted else PROMETHEUS


def _measured(
    work: MarkWork, resource: str, providers: "Providers", nodes: tuple[Node, ...], now: datetime
) -> RuleAnswer:
    wanted = measured_utilization(work.policy)
    if wanted is None:
        raise StrategyError("no strategy in the policy has metricsUtilization any more")
    figures = providers.measure(Cluster(Snapshot(now=now, nodes=nodes, pods=())), _about_nodes(wanted))
    percents = {node.name: percent for node, percent in _percents(figures, nodes, resource) if percent is not None}
    if figures.nodes and not percents:
        raise StrategyError(f"{wanted.origin} does not measure {resource}")
    readings = {name: Reading.of(percent) for name, percent in percents.items()}
    return RuleAnswer(readings, missing=figures.missing, warnings=figures.warnings)


def _about_nodes(wanted: MetricsUtilization) -> MetricsUtilization:
    """Return the question about nodes alone; marking itself decides what missing samples mean."""
    prometheus = wanted.prometheus and wanted.prometheus.model_copy(update={"pods": {}})
    return wanted.model_copy(update={"when_missing": "fail", "min_fresh_nodes": 0, "prometheus": prometheus})


def _percents(figures: Measured, nodes: tuple[Node, ...], resource: str) -> Iterator[tuple[Node, float | None]]:
    for node in nodes:
        if node.name in figures.nodes:
            yield node, NodeUtilization(node, figures.nodes[node.name]).percent(resource)
