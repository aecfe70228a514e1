"""`rebalancer mark`: one evaluation, or a loop of them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from rebalancer.app.exports import export
from rebalancer.app.interruption import Interruption
from rebalancer.app.live import LiveCluster
from rebalancer.app.live_cycle import connect
from rebalancer.app.marking.evaluating import Evaluator
from rebalancer.app.marking.work import MarkOptions, MarkWork, check_expiry, rules_text
from rebalancer.app.options import Options, Outcome
from rebalancer.app.policies import read_policy
from rebalancer.app.run_names import new_run
from rebalancer.app.serve import served
from rebalancer.app.telemetry import Telemetry
from rebalancer.app.traces import traced
from rebalancer.app.turns import Turn, turn
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.permissions import MARKING, demand_node_writes
from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.policy import load_marking_rules
from rebalancer.report.marking import marking_document

_LOG = logging.getLogger(__name__)

#: For all access reviews together.
_REVIEW_SECONDS = 30.0


def mark(asked: MarkOptions, interruption: Interruption) -> Outcome:
    """Evaluate once, and return the report and the exit code.

    Raises:
        UsageError: options, policy or rules cannot be used.
        ClusterError: there is no cluster to work on, or a permission is missing.
        Interrupted: a signal came before anything was written.
    """
    work = read_work(asked)
    with attended(asked.run) as telemetry:
        cluster = connect(asked.run, telemetry)
        demand_permissions(cluster, asked.run)
        evaluator = Evaluator(cluster, new_run(), interruption, telemetry, dry_run=asked.run.dry_run)
        outcome = evaluate_in_turn(evaluator, work, cluster, asked.run, telemetry)
    exit_code = interruption.exit_code or int(not outcome.succeeded)
    return Outcome(marking_document(outcome), exit_code)
