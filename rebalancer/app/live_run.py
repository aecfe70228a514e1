"""A live run: one cycle, attended by telemetry, in turn with other runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rebalancer.app.exports import export
from rebalancer.app.interruption import Interruption
from rebalancer.app.live import LiveCluster
from rebalancer.app.live_cycle import connect, cycle, warn_of_no_limits
from rebalancer.app.options import Confirm, Options, Outcome
from rebalancer.app.serve import served
from rebalancer.app.telemetry import Telemetry
from rebalancer.app.traces import traced
from rebalancer.app.turns import in_turn
from rebalancer.app.work import Finished, Work, publish
from rebalancer.kube.halt import Permit
from rebalancer.kube.patience import Patience


def run_live(
    options: Options, work: Work, confirm: Confirm, interruption: Interruption, patience: Patience | None = None
) -> Outcome:
    """Run one cycle on a live cluster.

    Raises:
        UsageError: the run was declined, or an option cannot be used.
        ClusterError: there is no cluster to work on.
        Interrupted: a signal came before anything was evicted.
    """
    with attended(options) as telemetry:
        cluster = connect(options, confirm, telemetry, patience)
        warn_of_no_limits(options, work)

        def act(permit: Permit) -> Finished:
            return cycle(cluster, options, work, interruption, telemetry, permit)

        return attempt(cluster, options, telemetry, lambda: in_turn(cluster, options, act))


@contextmanager
def attended(options: Options) -> Iterator[Telemetry]:
    """Serve health and metrics and send traces as long as this is entered, if the options or the place ask for it.

    Raises:
        UsageError: the port cannot be had, or the certificate cannot be used.
    """
    with traced(options.tracing) as tracing:
        telemetry = Telemetry(options, tracing)
        with served(options.serving, telemetry):
            yield telemetry


def attempt(cluster: LiveCluster, options: Options, telemetry: Telemetry, act: Callable[[], Finished]) -> Outcome:
    """Carry a cycle out, count what it came to, and publish it.

    Raises:
        ClusterError: it could not be carried out.
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
