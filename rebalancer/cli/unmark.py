"""The command `unmark`."""

import sys

import click

from rebalancer.cli.complaints import exit_on_error
from rebalancer.cli.logs import set_up
from rebalancer.cli.options import (
    client_options,
    context_option,
    kubeconfig_option,
    verbosity_option,
    warn_of_insecurity,
)
from rebalancer.run.options import ClientOptions
from rebalancer.untrusted.printable import printable


@click.command(short_help="Remove from nodes what runs have left there: soft taints, labels.")
@kubeconfig_option
@context_option
@client_options
@click.option(
    "--all", "everything", is_flag=True, help="Also marks that have not expired: a run may still rely on them."
)
@click.option("--dry-run", is_flag=True, help="Say what would be taken off, and change nothing.")
@click.option(
    "--key",
    default="kube-rebalancer/avoid",
    show_default=True,
    metavar="KEY",
    help="The key of the soft taints of steered runs, as the policy has it.",
)
@click.option(
    "--mark",
    default="kube-rebalancer/pressure",
    show_default=True,
    metavar="KEY[=VALUE]",
    help="The label or soft taint of `rebalancer mark`, as its rules have it.",
)
@verbosity_option
@exit_on_error
def unmark(
    kubeconfig: str | None,
    context: str | None,
    key: str,
    mark: str,
    verbosity: int,
    *,
    client: ClientOptions,
    everything: bool,
    dry_run: bool,
) -> None:
    """Remove from nodes what steered runs, --hold and `rebalancer mark` have left: soft taints, labels, annotations.

    Exit codes: 0 nothing is left but what a run may rely on; 2 bad usage; 3 no cluster; 4 marks stay on nodes.
    """
    set_up(verbosity, as_json=False)
    warn_of_insecurity(client)
    from rebalancer.run.interruption import Interruption  # noqa: PLC0415  `--help` answers at once

    with Interruption():
        from rebalancer.run import unmark as taking_off  # noqa: PLC0415

        keys, signs = taking_off.taint_keys(key), taking_off.pressure_signs(mark)
        outcome = taking_off.unmark(
            kubeconfig, context, keys, client, signs=signs, everything=everything, dry_run=dry_run
        )
    for line in outcome.lines:
        click.echo(printable(line))
    sys.exit(outcome.exit_code)
