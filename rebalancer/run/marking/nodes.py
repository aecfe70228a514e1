"""The nodes that may be marked: as they are read, what `mark` measures on them, and how they are written."""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import ClusterError, StrategyError
from rebalancer.kube.client import Client
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import MarkedNode, Wanted
from rebalancer.kube.node_marks import CONFLICTS, NODES, NodeMarks, NodeObject, Problems, on_each, patch
from rebalancer.kube.pressure_marks import Occupied, PressureMarks, standing
from rebalancer.kube.run_marks import SET_SECONDS
from rebalancer.kube.tries import Deadline, Halt
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import ListPage, items_of
from rebalancer.marking.evaluation import Marks, PressureReading, RuleAnswer
from rebalancer.marking.rules import MarkingRules, PressureRule, Signs, measured_utilization
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.policy.values import Policy
from rebalancer.untrusted.documents import decode_json
from rebalancer.usage.promql import NodeNames, PromQL, UsageWindow
from rebalancer.usage.providers import Providers

_LOG = logging.getLogger(__name__)

#: Rules may go by any number: only what is not a number is left out.
_LEAST = "-Inf"
#: For all pages of the list together.
_SECONDS = 60.0

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Changes:
    """How nodes should be marked by one run.

    Attributes:
        signs: what a marked node carries.
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
        """Return a node as it should be; raise Occupied where others have set a label or taint of the same key."""
        ours = PressureMarks(self.signs, self.earlier)
        pressures = self.marks.get(node.name)
        return ours.off(node) if pressures is None else ours.on(node, self.run, pressures)

    def due(self, carried: Mapping[str, MarkedNode]) -> Mapping[str, str]:
        """Return what has to be done, by node: `marked`, `changed`, `renewed` or `cleared`."""
        return {name: change for name, node in carried.items() if (change := self._change(node))}

    def problems(self, carried: Mapping[str, MarkedNode]) -> Problems:
        """Return the nodes that cannot be marked, and why."""
        found = {}
        for name, node in carried.items():
            try:
                self.wanted(node)
            except Occupied as error:
                found[name] = error
        return found

    def _change(self, node: MarkedNode) -> str:
        with suppress(Occupied):
            if not patch(node, self.wanted(node)):
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


class SeenNodes:
    """Nodes as they were read at one time, page by page: as rules and sources see them, and what each carries, by name.

    The collector has the warnings about nodes that could not be read.
    """

    def __init__(self) -> None:
        self.nodes: tuple[Node, ...] = ()
        self.carried: dict[str, MarkedNode] = {}
        self.collector = Collection().collector("Node")

    def add_page(self, page: bytes) -> str:
        """Take both views of the nodes from the same page."""
        decoded = decode_json(page, ListPage[NodeObject])
        self.carried |= {each.metadata.name: each.marked() for each in items_of(decoded, "Node")}
        return self.collector.add_page(page)

    def that_take_part(self, selector: LabelSelector) -> tuple[Node, ...]:
        """Return the nodes that pods may be scheduled to: selected, Ready and not cordoned."""
        usable = (each for each in self.nodes if each.ready and not each.unschedulable and not each.problem)
        return tuple(each for each in usable if selector.matches(each.labels))


def see_nodes(client: Client) -> SeenNodes:
    """Read all nodes."""
    try:
        seen = read_list(client, NODES, SeenNodes, deadline=Deadline.after(_SECONDS))
        seen.nodes = seen.collector.unique()
    except ValueError as error:
        raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error
    return seen


def answers(
    rules: MarkingRules, policy: Policy, providers: Providers, nodes: tuple[Node, ...], now: datetime
) -> Mapping[str, RuleAnswer]:
    """Return the answer to each rule about nodes; a source that fails is an answer with its problem."""
    wanted = measured_utilization(policy)
    found = {}
    for name, rule in rules.rules.items():
        try:
            if rule.resource is None:
                found[name] = _queried(rule, providers.prometheus(now), nodes)
            elif wanted is None:
                raise StrategyError("no strategy in the policy has metricsUtilization any more")  # noqa: TRY301
            else:
                found[name] = _measured(rule.resource, wanted, providers, nodes, now)
        except StrategyError as error:
            _LOG.warning("rule %s is not known: %s", name, error)
            source = wanted.origin if rule.resource and wanted else PROMETHEUS
            found[name] = RuleAnswer(problem=str(error), source=source)
    return found


def _measured(
    resource: str, wanted: MetricsUtilization, providers: Providers, nodes: tuple[Node, ...], now: datetime
) -> RuleAnswer:
    # About nodes alone; marking itself decides what missing samples mean.
    prometheus = wanted.prometheus and wanted.prometheus.model_copy(update={"pods": {}})
    about_nodes = wanted.model_copy(update={"when_missing": "fail", "min_fresh_nodes": 0, "prometheus": prometheus})
    figures = providers.measure(Cluster(Snapshot(now=now, nodes=nodes, pods=())), about_nodes)
    known = [NodeUtilization(node, figures.nodes[node.name]) for node in nodes if node.name in figures.nodes]
    percents = {each.node.name: percent for each in known if (percent := each.percent(resource)) is not None}
    if figures.nodes and not percents:
        raise StrategyError(f"{wanted.origin} does not measure {resource}")
    readings = {name: PressureReading.of(percent) for name, percent in percents.items()}
    return RuleAnswer(readings, missing=figures.missing, warnings=figures.warnings)


def _queried(rule: PressureRule, promql: PromQL, nodes: Iterable[Node]) -> RuleAnswer:
    """Return what the query of a rule says about nodes.

    Without `for` the present value counts.  With it, three more queries are sent: how many values there are in that
    time, the lowest and the highest of them.  A node needs a present value, and values for half of the steps (see
    `window`).  Example, `for: 5m`: 20 steps of 15 s, so a node needs 10 values; it is above 80 if the lowest is.
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
