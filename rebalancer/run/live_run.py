"""A live run: one cycle, with telemetry, taking turns with other runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rebalancer.errors import MarksLeft
from rebalancer.kube.halt import Permit
from rebalancer.kube.retry_policy import RetryPolicy
from rebalancer.run.consent import Consent, Person, Unseen
from rebalancer.run.exports import export
from rebalancer.run.interruption import Interruption
from rebalancer.run.live import LiveCluster
from rebalancer.run.live_cycle import connect, cycle, warn_of_no_limits
from rebalancer.run.options import Options, Outcome
from rebalancer.run.place import in_pod
from rebalancer.run.serve import served
from rebalancer.run.signs import Progress
from rebalancer.run.steered import demand_permissions
from rebalancer.run.telemetry import Telemetry
from rebalancer.run.traces import traced
from rebalancer.run.turns import in_turn
from rebalancer.run.work import Finished, Work, publish


def run_live(
    options: Options,
    work: Work,
    person: Person,
    interruption: Interruption,
    retry_policy: RetryPolicy | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run one cycle on a live cluster.

    Raises:
        UsageError: the run was declined, or an option cannot be used.
        ClusterError: there is no cluster to work on.
        Interrupted: a signal came before anything was evicted.
    """
    with attended(options, progress) as telemetry:
        outcome = _run(options, work, person, interruption, telemetry, retry_policy)
    return replace(outcome, exit_code=_exit_code(outcome, interruption))


def _exit_code(outcome: Outcome, interruption: Interruption) -> int:
    """Return the exit code of a run: after a signal that of the signal, so that a shell stops its script.

    In a pod, a run that has evicted or may have evicted keeps its own exit code: after an error a Job would start it
    again with fresh limits.
    """
    if outcome.exit_code == MarksLeft.exit_code:
        return outcome.exit_code
    has_spent = outcome.report["evictions"] or outcome.report["unknown"]
    if not interruption.exit_code or (in_pod() and has_spent):
        return outcome.exit_code
    return interruption.exit_code


def _run(
    options: Options,
    work: Work,
    person: Person,
    interruption: Interruption,
    telemetry: Telemetry,
    retry_policy: RetryPolicy | None,
) -> Outcome:
    cluster = connect(options, telemetry, retry_policy)
    if not options.dry_run and person.must_be_asked(cluster.description):
        demand_permissions(cluster, work)
        return _run_with_consent(
            Consent(person, cluster, options, work, telemetry), cluster, options, work, interruption, telemetry
        )
    warn_of_no_limits(options, work)

    def act(permit: Permit) -> Finished:
        return cycle(cluster, options, work, interruption, telemetry, permit)

    return attempt(cluster, options, telemetry, lambda: in_turn(cluster, options, act))


def _run_with_consent(
    consent: Consent,
    cluster: LiveCluster,
    options: Options,
    work: Work,
    interruption: Interruption,
    telemetry: Telemetry,
) -> Outcome:
    """Ask, then run the cycle that was agreed to; the Lease is not held while waiting for the answer."""

    def act(permit: Permit) -> Finished:
        return cycle(cluster, options, work, interruption, telemetry, permit, consent.fresh_look())

    def in_my_turn() -> Finished:
        return consent.nothing_to_do() or in_turn(cluster, options, act, consent.sleep)

    while True:
        consent.obtain()
        try:
            return attempt(cluster, options, telemetry, in_my_turn)
        except Unseen:
            continue


@contextmanager
def attended(options: Options, progress: Progress | None = None) -> Iterator[Telemetry]:
    """Serve health and metrics and send traces while this is entered, if the options say so or by default in a pod.

    Raises:
        UsageError: the port cannot be opened, or the certificate cannot be used.
    """
    with traced(options.tracing) as tracing:
        telemetry = Telemetry(options, tracing, progress)
        with served(options.serving, telemetry):
            yield telemetry


def attempt(cluster: LiveCluster, options: Options, telemetry: Telemetry, act: Callable[[], Finished]) -> Outcome:
    """Run a cycle, count its outcome, and publish it.

    Raises:
        ClusterError: the cycle could not run.
        Interrupted: a signal came before anything was evicted.
    """
    try:
        with telemetry.cycle():
            finished = act()
            telemetry.finished(finished)
        outcome = publish(finished, options)
        telemetry.metrics.report_made(outcome.report)
        return outcome
    finally:
        export(options.export, telemetry.metrics, cluster.description)
