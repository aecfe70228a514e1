"""`rebalancer mark`: one evaluation, or a loop of them.

Written by the evaluations' thread and read by the server's; the outcome is replaced as a whole, so no lock is needed.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Permit
from rebalancer.kube.permissions import MARKING, demand_writes
from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.report.marking import marking_document, nodes_document, nodes_html, status_document, status_html
from rebalancer.run.exports import export
from rebalancer.run.health import Health
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import LiveCluster, new_run
from rebalancer.run.live_run import connect
from rebalancer.run.marking.evaluating import Evaluator
from rebalancer.run.marking.work import MarkingSettings, MarkOptions
from rebalancer.run.options import Deliver, Options, Outcome, show_nothing
from rebalancer.run.policy_reporter import PolicyReporter
from rebalancer.run.rounds import Rounds
from rebalancer.run.serve import REFRESH_SECONDS, served
from rebalancer.run.steered import record_of
from rebalancer.run.telemetry import Telemetry, traced
from rebalancer.run.turns import Turn, turn
from rebalancer.telemetry.checks import PageOf, ServedPage

_LOG = logging.getLogger(__name__)

_JSON = "application/json"


class Board:
    """The last evaluation, shown to whoever asks.

    Args:
        health: of this process.
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
        return {"/status": lambda _: self._status(), "/nodes": lambda _: self._nodes()}

    def _status(self) -> ServedPage:
        document = status_document(self._last, self._health.alive(), self._health.ready())
        return _page(document, status_html(document))

    def _nodes(self) -> ServedPage:
        document = nodes_document(self._evaluated)
        return _page(document, nodes_html(document))


def _page(document: Mapping[str, Any], html: str) -> ServedPage:
    return ServedPage(
        200, (json.dumps(document, indent=2) + "\n").encode(), _JSON, html.encode(), refresh=REFRESH_SECONDS
    )


#: For all access reviews together.
_REVIEW_SECONDS = 30.0


def mark(asked: MarkOptions, interruption: Interruption, deliver: Deliver = show_nothing) -> Outcome:
    """Evaluate once, and return the report and the exit code.

    Raises:
        UsageError: options, policy or rules cannot be used.
        ClusterError: there is no cluster to work on, or a permission is missing.
        Interrupted: a signal came before anything was written.
    """
    settings = MarkingSettings(asked)
    with _attended(asked.run) as (telemetry, board):
        cluster = connect(asked.run, telemetry)
        _demand_permissions(cluster, asked.run)
        marking = _Marking(asked.run, settings, cluster, interruption, telemetry, board, deliver)
        return marking.show(marking.evaluate(None))


def mark_on(asked: MarkOptions, deliver: Deliver, interruption: Interruption) -> None:
    """Evaluate until a signal comes.

    Args:
        asked: what to do, and how often.
        deliver: takes the outcome of each evaluation.
        interruption: entered; a signal ends the loop.

    Raises:
        UsageError: options, policy or rules cannot be used.
        ClusterError: there is no cluster to work on, or a permission is missing.
    """
    with ExitStack() as stack:
        telemetry, board = stack.enter_context(_attended(asked.run))
        reporter = PolicyReporter(telemetry)
        settings = MarkingSettings(asked, reporter.report)
        cluster = connect(asked.run, telemetry)
        _demand_permissions(cluster, asked.run)
        if not asked.run.dry_run:  # which writes nothing, not even an Event
            reporter.open(cluster, asked.run.lease.resource_namespace)
            stack.callback(reporter.close)
        marking = _Marking(asked.run, settings, cluster, interruption, telemetry, board, deliver)
        Rounds(asked.run, cluster, telemetry, interruption, marking, "--interval").run()


class _Marking:
    """Evaluations by the settings in force (a `rebalancer.run.rounds.Round`)."""

    def __init__(
        self,
        options: Options,
        settings: MarkingSettings,
        cluster: LiveCluster,
        interruption: Interruption,
        telemetry: Telemetry,
        board: Board,
        deliver: Deliver,
    ) -> None:
        self._options = options
        self._settings = settings
        self._cluster = cluster
        self._telemetry = telemetry
        self._board = board
        self._deliver = deliver
        self._interruption = interruption
        record = record_of(cluster, options.lease)
        self._evaluator = Evaluator(cluster, new_run(), interruption, telemetry, record, dry_run=options.dry_run)

    def refresh(self) -> None:
        self._settings.refresh()

    def act(self, permit: Permit | None) -> bool:
        """Evaluate once; True even where a source does not answer: the next evaluation is not put off."""
        outcome = self.evaluate(permit)
        self._board.show(outcome)
        self.show(outcome)
        return not outcome.problems

    def show(self, outcome: MarkingOutcome) -> Outcome:
        """Show the report, and only then export metrics: that may take long, or hang."""
        try:
            shown = Outcome(marking_document(outcome), self._interruption.exit_code or int(not outcome.succeeded))
            return replace(shown, exit_code=self._deliver(shown))
        finally:
            self._export()

    def _export(self) -> None:
        client = self._cluster.client
        export(self._options.export, self._telemetry.metrics, self._cluster.description, client.ending.is_set)

    def evaluate(self, permit: Permit | None) -> MarkingOutcome:
        """Evaluate while the Lease is held; a dry run needs no Lease."""
        try:
            with self._telemetry.cycle(), self._turn(permit) as ours:
                if ours.skipped:
                    self._telemetry.ended("skipped")
                    return self._evaluator.skipped(ours.skipped)
                return self._evaluator.evaluate(self._settings.work(), ours.permit, ours.alarm)
        except BaseException:
            self._export()
            raise

    @contextmanager
    def _turn(self, permit: Permit | None) -> Iterator[Turn]:
        if permit or self._options.dry_run:
            yield Turn(permit) if permit else Turn()
            return
        with turn(self._cluster, self._options.lease, doing="marking nodes") as ours:
            yield ours


@contextmanager
def _attended(options: Options) -> Iterator[tuple[Telemetry, Board]]:
    """Serve health, metrics and pages about marks, and send traces, while this is entered.

    Raises:
        UsageError: the port cannot be opened, or the certificate cannot be used.
    """
    with traced(options.tracing) as tracing:
        telemetry = Telemetry(options, tracing)
        telemetry.health.watch_sources()
        board = Board(telemetry.health)
        with served(options.serving, telemetry, more=board.pages()):
            yield telemetry, board


def _demand_permissions(cluster: LiveCluster, options: Options) -> None:
    if not options.dry_run:
        deadline = Deadline.after(_REVIEW_SECONDS, cluster.retry_policy.clock)
        demand_writes(cluster.client, cluster.retry_policy, deadline, MARKING)
