"""`rebalancer mark`: one evaluation, or a loop of them."""

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rebalancer.errors import UsageError
from rebalancer.kube.node_marks import Problems
from rebalancer.kube.permissions import MARKING, demand_writes
from rebalancer.kube.pressure_marks import standing
from rebalancer.kube.run_marks import RunRecord
from rebalancer.kube.tries import Deadline, Halt, Permit
from rebalancer.marking.evaluation import MarkingOutcome, RuleAnswer, evaluate
from rebalancer.marking.rules import MarkingRules, load_marking_rules
from rebalancer.report.marking import marking_document, nodes_document, nodes_html, status_document, status_html
from rebalancer.run.cluster_lists import live_providers
from rebalancer.run.cluster_view import LiveRun
from rebalancer.run.interruption import Interruption
from rebalancer.run.leadership import Turn, turn
from rebalancer.run.live import new_run, open_cluster
from rebalancer.run.loop import PolicyReporter, Rounds, Watched
from rebalancer.run.marking.nodes import Changes, SeenNodes, answers, see_nodes, write
from rebalancer.run.options import MARKING_LEASE, Deliver, LeaseOptions, Options, Outcome
from rebalancer.run.policies import parse_sources, policy_text, settings_text
from rebalancer.run.serve import REFRESH_SECONDS, served
from rebalancer.run.steered import record_of
from rebalancer.run.telemetry import Health, Telemetry, export, traced
from rebalancer.telemetry.checks import PageOf, ServedPage

_LOG = logging.getLogger(__name__)

#: A mark must outlive this many intervals, since it is renewed when half of its time is over.
_INTERVALS = 3
#: For what sources read from the API server: tokens, and metrics-server's lists.
_SOURCE_SECONDS = 60.0


class MarkingSettings:
    """The policy and the rules, each read again when its content changes; `report` hears what is wrong with them."""

    def __init__(self, rules: str, options: Options, report: Callable[[str, str], None]) -> None:
        self._interval = options.interval
        name = options.policy
        parse = partial(parse_sources, name=name, strict=options.strict)
        self.policy = Watched("policy", name, policy_text, parse, report)
        read = partial(settings_text, what="marking rules", missing=f"there is no file {rules} with marking rules")
        self.rules = Watched("rules file", rules, read, partial(self._parse, rules), report)
        for warning in self.policy.value.warnings:
            _LOG.warning("policy %s: %s", name, warning)

    def refresh(self) -> None:
        """Read the files that have changed; an invalid one leaves the last valid one in force."""
        self.policy.refresh()
        self.rules.refresh()

    def _parse(self, source: str, text: str) -> MarkingRules:
        rules = load_marking_rules(text, self.policy.value.policy, source=source)
        seconds = rules.expiry.total_seconds()
        if seconds < _INTERVALS * self._interval:
            raise UsageError(
                f"marks would expire between two evaluations: expiry is {seconds:g} s in the rules, and has to be "
                f"three times --interval ({self._interval:g} s) at least"
            )
        return rules


class Board:
    """The last evaluation, shown to whoever asks.

    Written by the evaluations' thread and read by the server's; outcomes are replaced as a whole, so no lock is needed.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._last: MarkingOutcome | None = None
        self._evaluated: MarkingOutcome | None = None

    def show(self, outcome: MarkingOutcome) -> None:
        """Show this evaluation from now on; nodes stay as they were last evaluated where it was skipped."""
        self._last = outcome
        self._evaluated = self._evaluated if outcome.skipped else outcome

    def pages(self) -> Mapping[str, PageOf]:
        """Return the pages by path."""

        def page(document: Mapping[str, Any], html: Callable[[Mapping[str, Any]], str]) -> ServedPage:
            text = json.dumps(document, indent=2) + "\n"
            form = "application/json"
            return ServedPage(200, text.encode(), form, html(document).encode(), refresh=REFRESH_SECONDS)

        def status(_verbose: bool) -> ServedPage:
            return page(status_document(self._last, self._health.alive(), self._health.ready()), status_html)

        return {"/status": status, "/nodes": lambda _: page(nodes_document(self._evaluated), nodes_html)}


def mark(rules: str, options: Options, deliver: Deliver, interruption: Interruption) -> int:
    """Evaluate by a file with rules (`-` for standard input), once or until a signal comes; return the exit code.

    Raises:
        UsageError: options, policy or rules cannot be used.
        ClusterError: there is no cluster to work on, or a permission is missing.
        Interrupted: a signal came before anything was written.
    """
    if options.policy == rules == "-":
        raise UsageError("--policy and --rules cannot both be standard input")
    if options.lease.leader_elect and not options.interval:
        raise UsageError("--leader-elect goes with --interval: a single evaluation holds the Lease by itself")
    if options.lease.resource_name == LeaseOptions().resource_name:  # no other one is named
        options = replace(options, lease=replace(options.lease, resource_name=MARKING_LEASE))
    with ExitStack() as stack:
        telemetry = Telemetry(options, stack.enter_context(traced(options.tracing)))
        telemetry.health.source_problem = "no source was asked yet"
        board, reporter = Board(telemetry.health), PolicyReporter(telemetry)
        stack.enter_context(served(options.serving, telemetry, more=board.pages()))
        settings = MarkingSettings(rules, options, reporter.report if options.interval else lambda *_: None)
        cluster = open_cluster(options.client, observe=telemetry.request)
        interruption.ending = cluster.ending
        if not options.dry_run:
            demand_writes(cluster, MARKING)
        run = LiveRun(options, cluster, telemetry, interruption, deliver)
        marking = _Marking(run, settings, board)
        if not options.interval:
            return marking.act(None)[0]
        if not options.dry_run:  # which writes nothing, not even an Event
            reporter.open(cluster, options.lease.resource_namespace)
            stack.callback(reporter.close)
        Rounds(run, settings.refresh, lambda permit: marking.act(permit)[1], "--interval").run()
    return 0


@dataclass(frozen=True, slots=True)
class _Marking:
    """Evaluations by the settings in force, all under the name of one run.

    1. Read the nodes, and the marks that they carry.
    2. Ask the sources about the nodes that take part.  Where a source fails, marks stay until they expire.
    3. Decide which nodes should carry which marks (`rebalancer.marking.evaluation`).
    4. Write the nodes that are not as they should be, unless it is a dry run.
    """

    run: LiveRun
    settings: MarkingSettings
    board: Board
    name: str = field(default_factory=new_run)

    def act(self, permit: Permit | None) -> tuple[int, bool]:
        """Evaluate once, show the report, and only then export metrics: that may take long, or hang.

        Returns:
            The exit code, and whether all nodes were written.  A source that does not answer does not put off the next
            evaluation.
        """
        run = self.run
        try:
            with run.telemetry.cycle(), turn(run.client, run.options, permit, doing="marking nodes") as ours:
                outcome = self._evaluated(ours)
            self.board.show(outcome)
            shown = Outcome(marking_document(outcome), run.interruption.exit_code or int(not outcome.succeeded))
            return run.deliver(shown), not outcome.problems
        finally:
            ending = run.client.ending
            export(run.options.export, run.telemetry.metrics, run.description, ending.is_set)

    def _evaluated(self, turn: Turn) -> MarkingOutcome:
        if turn.skipped:
            self.run.telemetry.ended("skipped")
            return self._outcome(_now(), skipped=turn.skipped)
        policy, rules, cluster = self.settings.policy.value.policy, self.settings.rules.value, self.run.client
        telemetry, record = self.run.telemetry, record_of(cluster, self.run.options.lease)
        with telemetry.stage("read"):
            seen = see_nodes(cluster)
        now, part = _now(), seen.that_take_part(policy.node_selector)
        with telemetry.stage("plan"):
            providers = live_providers(policy, cluster, Deadline.after(_SOURCE_SECONDS), telemetry.samples)
            found = answers(rules, policy, providers, part, now)
        before = {name: marks for name, node in seen.carried.items() if (marks := standing(node))}
        evaluation = evaluate(rules, {each.name for each in part}, found, before, now)
        changes = Changes(self.name, rules.mark, evaluation.marks, record.signs())
        due = changes.due(seen.carried)
        outcome = self._outcome(
            now,
            rules=rules,
            nodes=len(part),
            answers=found,
            evaluation=evaluation,
            changes=due,
            problems={name: str(e) for name, e in self._written(changes, due, seen, turn.permit, record).items()},
            warnings=_warnings(seen, found, turn.alarm),
        )
        self._tell(outcome)
        return outcome

    def _outcome(self, now: datetime, **found: Any) -> MarkingOutcome:
        return MarkingOutcome(self.name, self.run.options.dry_run, self.run.description, now, **found)

    def _written(
        self, changes: Changes, due: Mapping[str, str], seen: SeenNodes, permit: Permit, record: RunRecord
    ) -> Problems:
        run = self.run
        if run.options.dry_run:
            return changes.problems(seen.carried)
        halt = Halt(permit=permit, signalled=run.client.ending)
        run.interruption.then(halt.signal)
        with run.telemetry.stage("mark"):
            record.note_signs(changes.texts() if due else ())
            return write(run.client, changes, due, halt)

    def _tell(self, outcome: MarkingOutcome) -> None:
        telemetry = self.run.telemetry
        unknown = "not all is known that is needed (the log says what)"
        telemetry.health.source_problem = unknown if outcome.evaluation.unknown else ""
        for answer in outcome.answers.values():
            if answer.problem:
                telemetry.metrics.source_errors.labels(answer.source).inc()
        telemetry.ended("succeeded" if outcome.succeeded else "failed")
        telemetry.metrics.marked(outcome.nodes_by_rule())
        for name, change in outcome.changes.items():
            if name not in outcome.problems:
                rules = ", ".join(each.rule for each in outcome.evaluation.marks.get(name, ()))
                _LOG.info("node %s: %s%s", name, change, f" ({rules})" if rules else "")
        for name, problem in outcome.problems.items():
            _LOG.warning("node %s is not as it should be: %s", name, problem)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _warnings(seen: SeenNodes, found: Mapping[str, RuleAnswer], warning: str) -> tuple[str, ...]:
    about = [f"rule {name}: {text}" for name, each in found.items() for text in each.warnings]
    return tuple(dict.fromkeys([*filter(None, [warning]), *seen.collector.warnings, *about]))
