"""One evaluation on a live cluster.

1. Read the nodes, and the marks that they carry.
2. Ask the sources about the nodes that take part.  Where a source fails, marks stay until they expire.
3. Decide which nodes should carry which marks (`rebalancer.marking.evaluation`).
4. Write the nodes that are not as they should be, unless it is a dry run.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import Measured
from rebalancer.cluster.node import Node
from rebalancer.cluster.selectors import LabelSelector
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import ClusterError, StrategyError
from rebalancer.kube import pressure_marks
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Halt, Permit, always
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import MarkedNode, Wanted
from rebalancer.kube.node_marks import NODES, NodeMarks, NodeObject, on_each, patch
from rebalancer.kube.run_marks import CONFLICTS, SET_SECONDS, Problems
from rebalancer.kube.run_record import RunRecord
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import Page, items_of
from rebalancer.marking.evaluation import evaluate
from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.marking.pressure import Marks, PressureReading, RuleAnswer
from rebalancer.marking.rules import PressureRule, Signs
from rebalancer.marking.rules_file import measured_utilization
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import LiveCluster
from rebalancer.run.live_usage import live_providers
from rebalancer.run.marking.work import MarkWork
from rebalancer.run.telemetry import Telemetry
from rebalancer.untrusted.documents import decode_json

if TYPE_CHECKING:
    from rebalancer.usage.providers import Providers


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
        pressures = self.marks.get(node.name)
        if pressures is None:
            return pressure_marks.cleared(node, self.signs, self.earlier)
        return pressure_marks.pressed(node, self.signs, self.run, pressures, self.earlier)

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
        except pressure_marks.Occupied as error:
            return error
        return None

    def _change(self, node: MarkedNode) -> str:
        if self._problem(node) is None and not patch(node, self.wanted(node)):
            return ""
        if node.name not in self.marks:
            return "cleared"
        before = [each.rule for each in pressure_marks.standing(node)]
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


def _answer(
    work: MarkWork, rule: PressureRule, providers: "Providers", nodes: tuple[Node, ...], now: datetime
) -> RuleAnswer:
    try:
        if rule.resource is None:
            return providers.answer(rule, nodes, now)
        return _measured(work, rule.resource, providers, nodes, now)
    except StrategyError as error:
        return RuleAnswer(problem=str(error), source=_source(work, rule))


def _source(work: MarkWork, rule: PressureRule) -> str:
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
    readings = {name: PressureReading.of(percent) for name, percent in percents.items()}
    return RuleAnswer(readings, missing=figures.missing, warnings=figures.warnings)


def _about_nodes(wanted: MetricsUtilization) -> MetricsUtilization:
    """Return the question about nodes alone; marking itself decides what missing samples mean."""
    prometheus = wanted.prometheus and wanted.prometheus.model_copy(update={"pods": {}})
    return wanted.model_copy(update={"when_missing": "fail", "min_fresh_nodes": 0, "prometheus": prometheus})


def _percents(figures: Measured, nodes: tuple[Node, ...], resource: str) -> Iterator[tuple[Node, float | None]]:
    for node in nodes:
        if node.name in figures.nodes:
            yield node, NodeUtilization(node, figures.nodes[node.name]).percent(resource)


#: For what sources read from the API server: tokens, and metrics-server's lists.
_SOURCE_SECONDS = 60.0


class Evaluator:
    """Evaluates again and again under one run's name.

    Args:
        cluster: the API server.
        run: the name of the run.
        dry_run: whether to write nothing.
        interruption: entered; once writes may begin, a signal only stops further writes.
        telemetry: is told what sources say.
        record: of the labels and taints that were ever set.
    """

    def __init__(
        self,
        cluster: LiveCluster,
        run: str,
        interruption: Interruption,
        telemetry: Telemetry,
        record: RunRecord,
        *,
        dry_run: bool,
    ) -> None:
        self._cluster = cluster
        self._record = record
        self._run = run
        self._dry_run = dry_run
        self._interruption = interruption
        self._telemetry = telemetry

    def evaluate(self, work: MarkWork, permit: Permit = always, warning: str = "") -> MarkingOutcome:
        """Evaluate once, and return what came of it.

        Raises:
            ClusterError: nodes cannot be listed.
            Interrupted: a signal came before anything was written.
        """
        with self._telemetry.stage("read"):
            seen = see_nodes(self._cluster.client)
        now = datetime.now(UTC).replace(microsecond=0)
        part = seen.that_take_part(work.policy.node_selector)
        providers = live_providers(work.policy, self._cluster, Deadline.after(_SOURCE_SECONDS), self._telemetry.samples)
        with self._telemetry.stage("plan"):
            found = answers(work, providers, part, now)
        before = {name: marks for name, node in seen.carried.items() if (marks := pressure_marks.standing(node))}
        evaluation = evaluate(work.rules, {each.name for each in part}, found, before, now)
        changes = Changes(self._run, work.rules.mark, evaluation.marks, self._record.signs())
        due = changes.due(seen.carried)
        problems = self._write(changes, due, seen, permit)
        outcome = MarkingOutcome(
            self._run,
            self._dry_run,
            self._cluster.description,
            now,
            rules=work.rules,
            nodes=len(part),
            answers=found,
            evaluation=evaluation,
            before=before,
            changes=due,
            problems={name: str(error) for name, error in problems.items()},
            warnings=_warnings(seen, found, warning),
        )
        self._tell(outcome)
        return outcome

    def skipped(self, why: str) -> MarkingOutcome:
        """Return the outcome of an evaluation that did not take place."""
        now = datetime.now(UTC).replace(microsecond=0)
        return MarkingOutcome(self._run, self._dry_run, self._cluster.description, now, skipped=why)

    def _write(self, changes: Changes, due: Mapping[str, str], seen: SeenNodes, permit: Permit) -> Problems:
        if self._dry_run:
            return changes.problems(seen.carried)
        halt = Halt(permit=permit, signalled=self._cluster.client.ending)
        self._interruption.then(halt.signal)
        with self._telemetry.stage("mark"):
            self._record.note_signs(changes.texts() if due else ())
            return write(self._cluster.client, changes, due, halt)

    def _tell(self, outcome: MarkingOutcome) -> None:
        self._telemetry.health.sources_asked(outcome.source_problem)
        for answer in outcome.answers.values():
            if answer.problem:
                self._telemetry.metrics.source_failed(answer.source)
        self._telemetry.ended("succeeded" if outcome.succeeded else "failed")
        self._telemetry.metrics.marked(outcome.nodes_by_rule())
        for name, change in outcome.changes.items():
            if name not in outcome.problems:
                rules = ", ".join(each.rule for each in outcome.evaluation.marks.get(name, ()))
                _LOG.info("node %s: %s%s", name, change, f" ({rules})" if rules else "")
        for name, problem in outcome.problems.items():
            _LOG.warning("node %s is not as it should be: %s", name, problem)


def _warnings(seen: SeenNodes, found: Mapping[str, RuleAnswer], warning: str) -> tuple[str, ...]:
    about = [f"rule {name}: {text}" for name, each in found.items() for text in each.warnings]
    return tuple(dict.fromkeys([*filter(None, [warning]), *seen.warnings, *about]))
