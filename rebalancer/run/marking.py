"""`rebalancer mark`: nodes are read, sources are asked, and marks are written, once or again and again.

What follows from the figures is decided in `rebalancer.marking`; what a mark is on a node, in `rebalancer.kube`.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite

from rebalancer.balancing.utilization import NodeUtilization
from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.node import Node
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.errors import ClusterError, StrategyError, UsageError
from rebalancer.kube.lists import read_list
from rebalancer.kube.marks import MarkedNode, Wanted
from rebalancer.kube.node_marks import CONFLICTS, NODES, NodeMarks, NodeObject, Problems, on_each, patch
from rebalancer.kube.permissions import MARKING, demand_writes
from rebalancer.kube.pressure_marks import Occupied, PressureMarks, standing
from rebalancer.kube.run_marks import SET_SECONDS, RunRecord
from rebalancer.kube.tries import Deadline, Halt, Permit
from rebalancer.kube.wire.collect import Collection
from rebalancer.kube.wire.pages import ListPage, items_of
from rebalancer.marking.evaluation import MarkingOutcome, Marks, PressureReading, RuleAnswer, evaluate
from rebalancer.marking.rules import MarkingRules, PressureRule, Signs, load_marking_rules, measured_utilization
from rebalancer.policy.usage import PROMETHEUS, MetricsUtilization
from rebalancer.policy.values import LoadedPolicy, Policy
from rebalancer.report.marking import marking_document, nodes_document, nodes_html, status_document, status_html
from rebalancer.run.cluster_view import LiveRun, live_providers
from rebalancer.run.interruption import Interruption
from rebalancer.run.leadership import Turn, turn
from rebalancer.run.live import new_run, open_cluster
from rebalancer.run.loop import PolicyReporter, Rounds, Watched
from rebalancer.run.options import MARKING_LEASE, Deliver, LeaseOptions, Options, Outcome
from rebalancer.run.policies import policy_text, read_policy, settings_text
from rebalancer.run.steered import record_of
from rebalancer.run.telemetry import REFRESH_SECONDS, Telemetry, document_page, export, served, traced
from rebalancer.telemetry.checks import PageOf
from rebalancer.untrusted.documents import decode_json
from rebalancer.usage.promql import NodeNames, PromQL, UsageWindow
from rebalancer.usage.providers import Providers, described

_LOG = logging.getLogger(__name__)
_LEAST = "-Inf"  # rules may go by any number: only what is not a number is left out
_SECONDS = 60.0  # for all pages of the list together
Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Changes:
    """How nodes should be marked by one run."""

    run: str
    signs: Signs  # what a marked node carries
    marks: Marks
    earlier: frozenset[str]  # labels and taints that were ours before, as KEY=VALUE, by the record

    def texts(self) -> frozenset[str]:
        """Return the labels and taints that nodes will carry, as KEY=VALUE."""
        rules = {each[0].rule for each in self.marks.values()}
        return frozenset(str(sign.on(rule)) for sign in (self.signs.label, self.signs.taint) if sign for rule in rules)

    def wanted(self, node: MarkedNode) -> Wanted:
        """Return a node as it should be; raise Occupied where others have set a label or taint of the same key."""
        ours = PressureMarks(self.signs, self.earlier)
        pressures = self.marks.get(node.name)
        return ours.off(node) if pressures is None else ours.on(node, self.run, pressures)

    def due(self, node: MarkedNode) -> str:
        """Return what has to be done to a node: `marked`, `changed`, `renewed` or `cleared`; empty if nothing has."""
        with suppress(Occupied):
            if not patch(node, self.wanted(node)):
                return ""
        if node.name not in self.marks:
            return "cleared"
        before = [each.rule for each in standing(node)]
        is_same = before == [each.rule for each in self.marks[node.name]]
        return "marked" if not before else "renewed" if is_same else "changed"


class SeenNodes:
    """Nodes as they were read at one time: as rules and sources see them, and what each carries, by name."""

    def __init__(self) -> None:
        self.carried: dict[str, MarkedNode] = {}
        self.collector = Collection().collector("Node")

    def add_page(self, page: bytes) -> str:
        """Take both views of the nodes from the same page."""
        decoded = decode_json(page, ListPage[NodeObject])
        self.carried |= {each.metadata.name: each.marked() for each in items_of(decoded, "Node")}
        return self.collector.add_page(page)

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes; raise ClusterError where two of a name differ."""
        try:
            return self.collector.unique()
        except ValueError as error:
            raise ClusterError(f"the API server does not answer GET {NODES} with a list of nodes: {error}") from error


def answers(
    rules: MarkingRules,
    policy: Policy,
    providers: Providers,
    nodes: tuple[Node, ...],
    now: datetime,
    others: tuple[Node, ...] = (),
) -> Mapping[str, RuleAnswer]:
    """Return the answer to each rule about nodes; a source that fails is an answer with its problem.

    What sources say of `others` in the cluster, which take no part, does not count.
    """
    wanted = measured_utilization(policy)
    found = {}
    for name, rule in rules.rules.items():
        try:
            if rule.resource is None:
                found[name] = _queried(rule, providers.prometheus(now), nodes, others)
            elif wanted is None:
                raise StrategyError("no strategy in the policy has metricsUtilization any more")  # noqa: TRY301
            else:
                found[name] = _measured(rule.resource, wanted, providers, nodes, now, others)
        except StrategyError as error:
            _LOG.warning("rule %s is not known: %s", name, error)
            source = wanted.origin if rule.resource and wanted else PROMETHEUS
            found[name] = RuleAnswer(problem=str(error), source=source)
    return found


def _measured(
    resource: str,
    wanted: MetricsUtilization,
    providers: Providers,
    nodes: tuple[Node, ...],
    now: datetime,
    others: tuple[Node, ...],
) -> RuleAnswer:
    # About nodes alone; marking itself decides what missing samples mean.
    prometheus = wanted.prometheus and wanted.prometheus.model_copy(update={"pods": {}})
    about_nodes = wanted.model_copy(update={"prometheus": prometheus})
    figures = providers.figures(Cluster(Snapshot(now=now, nodes=(*nodes, *others), pods=())), about_nodes)
    missing = {node.name: figures.missing[node.name] for node in nodes if node.name in figures.missing}
    fresh = figures.nodes.keys() - missing.keys()
    known = [NodeUtilization(node, figures.nodes[node.name]) for node in nodes if node.name in fresh]
    percents = {each.node.name: percent for each in known if (percent := each.percent(resource)) is not None}
    if known and not percents:
        raise StrategyError(f"{wanted.origin} does not measure {resource}")
    readings = {name: PressureReading.of(percent) for name, percent in percents.items()}
    told = [f"nodes without fresh usage get no new mark: {described(missing)}"] if missing else []
    return RuleAnswer(readings, missing=missing, warnings=(*figures.warnings, *told))


def _queried(rule: PressureRule, promql: PromQL, nodes: Iterable[Node], others: Iterable[Node]) -> RuleAnswer:
    """Return what the query of a rule says about nodes.

    Without `for` the present value counts.  With it, three more queries are sent: how many values there are in that
    time, the lowest and the highest of them.  A node needs a present value, and values for half of the steps (see
    `window`).  Example, `for: 5m`: 20 steps of 15 s, so a node needs 10 values; it is above 80 if the lowest is.
    """
    names, query, aside = NodeNames((*nodes, *others), rule.node), rule.query, {each.name for each in others}
    strangers: dict[str, None] = {}

    def values(query: str) -> Values:
        taking_part = (each for each in promql.ask(query) if names.of(each) not in aside)
        found, about_strangers = names.values(taking_part, query)
        strangers.update({about_strangers: None} if about_strangers else {})
        return found

    present = values(query)
    missing = {node: f"the value is {value:g}" for node, value in present.items() if not isfinite(value)}
    usable = {node: value for node, value in present.items() if node not in missing}
    lowest: Values = usable
    highest: Values = usable
    if rule.lasting:
        window = UsageWindow.over(rule.lasting, _LEAST)
        counts = values(window.count(query))
        lowest, highest = (values(window.quantile(query, each)) for each in (0, 1))
        for node in usable:
            if (count := counts.get(node, 0)) * 2 < window.steps:
                missing[node] = f"{count:g} of {window.steps} values in the time that `for` says"
    known = [node for node in usable if node not in missing and node in lowest and node in highest]
    readings = {node: PressureReading(usable[node], lowest[node], highest[node]) for node in known}
    return RuleAnswer(readings, missing=missing, warnings=(*strangers, *promql.warnings))


_INTERVALS = 3  # A mark must outlive this many intervals, since it is renewed when half of its time is over
_SOURCE_SECONDS = 60.0  # for what sources read from the API server: tokens, and metrics-server's lists


def _rules(name: str, policy: Watched[LoadedPolicy], interval: float, text: str) -> MarkingRules:
    rules = load_marking_rules(text, policy.value.policy, source=name)
    seconds = rules.expiry.total_seconds()
    if seconds < _INTERVALS * interval:
        raise UsageError(
            f"marks would expire between two evaluations: expiry is {seconds:g} s in the rules, and has to be "
            f"three times --interval ({interval:g} s) at least"
        )
    return rules


def mark(rules: str, options: Options, deliver: Deliver, interruption: Interruption) -> int:
    """Evaluate by a file with rules (`-` for standard input), once or until a signal comes; return the exit code."""
    if options.policy == rules == "-":
        raise UsageError("--policy and --rules cannot both be standard input")
    if options.lease.leader_elect and not options.interval:
        raise UsageError("--leader-elect goes with --interval: a single evaluation holds the Lease by itself")
    if options.lease.resource_name == LeaseOptions().resource_name:  # no other one is named
        options = replace(options, lease=replace(options.lease, resource_name=MARKING_LEASE))
    with ExitStack() as stack:
        telemetry = Telemetry(options, stack.enter_context(traced(options.tracing)))
        telemetry.health.source_problem = "no source was asked yet"
        reporter = PolicyReporter(telemetry)
        report = reporter.report if options.interval else lambda *_: None
        parse = partial(read_policy, options.policy, strict=options.strict, runs=False)
        policy = Watched("policy", options.policy, policy_text, parse, report)
        read = partial(settings_text, what="marking rules", missing=f"there is no file {rules} with marking rules")
        watched = Watched("rules file", rules, read, partial(_rules, rules, policy, options.interval), report)
        for warning in policy.value.warnings:
            _LOG.warning("policy %s: %s", options.policy, warning)
        cluster = open_cluster(options.client, observe=telemetry.request)
        interruption.ending = cluster.ending
        marking = _Marking(LiveRun(options, cluster, telemetry, interruption, deliver), policy, watched)
        stack.enter_context(served(options.serving, telemetry, more=marking.pages()))
        if not options.dry_run:
            demand_writes(cluster, MARKING)
        if not options.interval:
            return marking.act(None)[0]
        if not options.dry_run:  # which writes nothing, not even an Event
            reporter.open(stack, cluster, options.lease.resource_namespace)
        Rounds(marking.run, marking.refresh, lambda permit: marking.act(permit)[1], "--interval").run()
    return 0


@dataclass(slots=True)
class _Marking:
    """Evaluations by the settings in force, all under the name of one run.

    1. Read the nodes, and the marks that they carry.
    2. Ask the sources about the nodes that take part.  Where a source fails, marks stay until they expire.
    3. Decide which nodes should carry which marks (`rebalancer.marking.evaluation`).
    4. Write the nodes that are not as they should be, unless it is a dry run.
    """

    run: LiveRun
    policy: Watched[LoadedPolicy]
    rules: Watched[MarkingRules]
    name: str = field(default_factory=new_run)
    # What pages show: replaced as a whole, so that the server's thread needs no lock.
    _last: MarkingOutcome | None = None
    _evaluated: MarkingOutcome | None = None  # where the last one was skipped, nodes stay as they were evaluated before

    def pages(self) -> Mapping[str, PageOf]:
        """Return the pages of the last evaluation, by path."""
        health, page = self.run.telemetry.health, partial(document_page, refresh=REFRESH_SECONDS)
        return {
            "/status": lambda _: page(status_document(self._last, health.alive(), health.ready()), status_html),
            "/nodes": lambda _: page(nodes_document(self._evaluated), nodes_html),
        }

    def refresh(self) -> None:
        """Read the files that have changed; an invalid one leaves the last valid one in force."""
        self.policy.refresh()
        self.rules.refresh()

    def act(self, permit: Permit | None) -> tuple[int, bool]:
        """Evaluate once, show the report, and only then export metrics: that may take long, or hang.

        Return the exit code, and whether few nodes failed: neither these nor a source without an answer put off the
        next evaluation, since marks of other nodes would expire meanwhile.
        """
        run = self.run
        try:
            with run.telemetry.cycle(), turn(run.client, run.options, permit, doing="marking nodes") as ours:
                outcome = MarkingOutcome(self.name, run.options.dry_run, run.description, _now(), skipped=ours.skipped)
                outcome = outcome if ours.skipped else self._evaluate(outcome, ours)
                self._tell(outcome)
            self._last, self._evaluated = outcome, self._evaluated if outcome.skipped else outcome
            shown = Outcome(marking_document(outcome), run.interruption.exit_code or int(not outcome.succeeded))
            return run.deliver(shown), 2 * len(outcome.problems) <= outcome.nodes
        finally:
            export(run.options.export, run.telemetry.metrics, run.description, run.client.ending.is_set)

    def _evaluate(self, outcome: MarkingOutcome, turn: Turn) -> MarkingOutcome:
        policy, rules = self.policy.value.policy, self.rules.value
        client, telemetry = self.run.client, self.run.telemetry
        record = record_of(client, self.run.options.lease)
        with telemetry.stage("read"):
            seen = read_list(client, NODES, SeenNodes, deadline=Deadline.after(_SECONDS))
        nodes = seen.nodes()
        usable = (each for each in nodes if each.ready and not each.unschedulable and not each.problem)
        now, part = _now(), tuple(each for each in usable if policy.node_selector.matches(each.labels))
        others = tuple(each for each in nodes if each not in part)
        with telemetry.stage("plan"):
            providers = live_providers(policy, client, Deadline.after(_SOURCE_SECONDS), telemetry.samples)
            found = answers(rules, policy, providers, part, now, others)
        before = {name: marks for name, node in seen.carried.items() if (marks := standing(node))}
        evaluation = evaluate(rules, {each.name for each in part}, found, before, now)
        changes = Changes(self.name, rules.mark, evaluation.marks, record.signs())
        due = {name: change for name, node in seen.carried.items() if (change := changes.due(node))}
        problems = self._written(changes, due, seen, turn.permit, record)
        about = [f"rule {name}: {text}" for name, each in found.items() for text in each.warnings]
        return replace(
            outcome,
            now=now,
            rules=rules,
            nodes=len(part),
            answers=found,
            evaluation=evaluation,
            changes=due,
            problems={name: str(error) for name, error in problems.items()},
            warnings=tuple(dict.fromkeys([*filter(None, [turn.alarm]), *seen.collector.warnings, *about])),
        )

    def _written(
        self, changes: Changes, due: Mapping[str, str], seen: SeenNodes, permit: Permit, record: RunRecord
    ) -> Problems:
        run = self.run
        if run.options.dry_run:
            return on_each(due, lambda name: changes.wanted(seen.carried[name]))
        halt = Halt(permit=permit, signalled=run.client.ending)
        run.interruption.then(halt.signal)
        # Each node is written in one piece, so that a signal, or an error on another node, leaves none half marked.
        writer = NodeMarks(run.client, replace(CONFLICTS, stop=halt.signalled), halt.check)
        with run.telemetry.stage("mark"):
            record.note_signs(changes.texts() if due else ())
            deadline = Deadline.after(SET_SECONDS)
            return on_each(due, lambda name: writer.change(name, changes.wanted, deadline))

    def _tell(self, outcome: MarkingOutcome) -> None:
        telemetry = self.run.telemetry
        telemetry.result = "skipped" if outcome.skipped else "succeeded" if outcome.succeeded else "failed"
        if outcome.skipped:
            return
        unknown = "not all is known that is needed (the log says what)"
        telemetry.health.source_problem = unknown if outcome.evaluation.unknown else ""
        for answer in outcome.answers.values():
            if answer.problem:
                telemetry.metrics.source_errors.labels(answer.source).inc()
        telemetry.metrics.marked(outcome.nodes_by_rule())
        for name, change in outcome.changes.items():
            if name not in outcome.problems:
                rules = ", ".join(each.rule for each in outcome.evaluation.marks.get(name, ()))
                _LOG.info("node %s: %s%s", name, change, f" ({rules})" if rules else "")
        for name, problem in outcome.problems.items():
            _LOG.warning("node %s is not as it should be: %s", name, problem)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
