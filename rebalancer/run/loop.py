"""Cycles for as long as the program runs; a cycle that fails does not end it.

1. Take the Lease: with --leader-elect once and for all cycles, without it for each cycle anew.  A dry run needs none.
2. Read the policy file again if its content has changed; if the new one is bad, keep the last good one.
3. Run a cycle and deliver its report.  Count failed cycles in a row.
4. Wait for the next start (`rebalancer.run.rounds`), in naps of 1 s.  A signal, or losing the Lease, ends the wait.

Example, an interval of 300 s: cycles start at 0, 300 and 600 s, the later ones up to 30 s late.  The one at 600 s
fails: the next one starts at 1200 s, and if that fails too, the one after it at 2400 s.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack

from rebalancer.kube.halt import Permit
from rebalancer.policy.values import LoadedPolicy
from rebalancer.run.consent import Consent, Person
from rebalancer.run.interruption import Interruption
from rebalancer.run.live_run import LiveRun, attempt, attended, connect, warn_of_no_limits
from rebalancer.run.options import Deliver, Options, Outcome
from rebalancer.run.policies import parse_policy, policy_text
from rebalancer.run.policy_reporter import PolicyReporter
from rebalancer.run.progress import Progress
from rebalancer.run.rounds import Rounds, sleep
from rebalancer.run.steered import demand_permissions
from rebalancer.run.watched import Report, Watched
from rebalancer.run.work import Work, work_maker

_LOG = logging.getLogger(__name__)


class PolicyFile:
    """The policy of that name, and what it asks for now.

    Args:
        name: a file, `-` for standard input, which is read once, or a preset's name.
        report: see `rebalancer.run.watched`.
        strict: whether warnings count as errors.
        live: whether unknown keys do.
        make: makes the policy in force ready to run.

    Raises:
        UsageError: there is no such policy, or it has problems.
    """

    def __init__(
        self, name: str, report: Report, make: Callable[[LoadedPolicy], Work], *, strict: bool, live: bool = False
    ) -> None:
        self._make = make

        def parse(text: str) -> LoadedPolicy:
            return parse_policy(text, name, strict=strict, live=live)

        self._file = Watched("policy", name, policy_text, parse, report)

    def work(self) -> Work:
        """Return what the policy in force asks for, with new strategies: these keep nothing from cycle to cycle."""
        return self._make(self._file.value)

    def refresh(self) -> None:
        """Read the policy again if its content has changed; warn once of a bad one."""
        self._file.refresh()


def run_loop(
    options: Options,
    person: Person,
    deliver: Deliver,
    interruption: Interruption,
    progress: Progress | None = None,
) -> None:
    """Run cycles until a signal comes.

    Raises:
        UsageError: an option or the policy cannot be used.
        Declined: the answer to the question was no.
        ClusterError: the API server is not configured or not reachable, or the permission for the Lease is missing.
    """
    with ExitStack() as stack:
        telemetry = stack.enter_context(attended(options, progress))
        reporter = PolicyReporter(telemetry)
        make, live = work_maker(options), not options.dry_run
        policy = PolicyFile(options.policy, reporter.report, make, strict=options.strict, live=live)
        cluster = connect(options, telemetry)
        for warning in policy.work().warnings:
            _LOG.warning("policy %s: %s", options.policy, warning)
        if not options.dry_run:
            demand_permissions(cluster, policy.work())
        if not options.dry_run and person.must_be_asked(cluster.description):
            Consent(person, cluster, options, policy.work(), telemetry).obtain(for_later=True)
        if not options.dry_run:  # which writes nothing, not even an Event
            reporter.open(cluster, options.lease.resource_namespace)
            stack.callback(reporter.close)
        warn_of_no_limits(options, policy.work())

        def show(outcome: Outcome) -> int:
            telemetry.show(outcome.report)
            deliver(outcome)
            return outcome.exit_code  # a report that is lost does not make the next cycle wait longer

        work = _Cycles(LiveRun(options, cluster, telemetry, interruption, show, sleep), policy)
        Rounds(options, cluster, telemetry, interruption, work, "--descheduling-interval").run()


class _Cycles:
    """Cycles by the policy in force (a `rebalancer.run.rounds.Round`)."""

    def __init__(self, run: LiveRun, policy: PolicyFile) -> None:
        self._run = run
        self._policy = policy

    def refresh(self) -> None:
        self._policy.refresh()

    def act(self, permit: Permit | None) -> bool:
        """Run one cycle and show its report."""
        return attempt(self._run, self._policy.work(), permit).exit_code == 0
