"""One evaluation on a live cluster.

1. Read the nodes, and the marks that they carry.
2. Ask the sources about the nodes that take part.  Where a source fails, marks stay until they expire.
3. Decide which nodes should carry which marks (`rebalancer.marking.evaluation`).
4. Write the nodes that are not as they should be, unless it is a dry run.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from rebalancer.kube import pressure_marks
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Halt, Permit, always
from rebalancer.kube.run_marks import Problems
from rebalancer.marking.evaluation import evaluate
from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.marking.pressure import RuleAnswer
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import LiveCluster
from rebalancer.run.live_usage import live_providers
from rebalancer.run.marking.answers import answers
from rebalancer.run.marking.changes import Changes, write
from rebalancer.run.marking.nodes import SeenNodes, see_nodes
from rebalancer.run.marking.work import MarkWork
from rebalancer.run.telemetry import Telemetry

_LOG = logging.getLogger(__name__)

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
    """

    def __init__(
        self, cluster: LiveCluster, run: str, interruption: Interruption, telemetry: Telemetry, *, dry_run: bool
    ) -> None:
        self._cluster = cluster
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
        changes = Changes(self._run, work.rules.mark, evaluation.marks)
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
