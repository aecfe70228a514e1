"""The commands about what remains between runs: marks on nodes, memory, pauses, the breaker; and `appetite`."""

import json
import sys
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rebalancer.cli import options as flags
from rebalancer.cli.group import service_flags
from rebalancer.cli.logs import complain
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import ClientOptions, LeaseOptions, Options, Outcome
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.run.standing import Standing

_USUAL = LeaseOptions()


@click.command(short_help="Mark nodes under pressure with a label or soft taint.")
@flags.policy_option
@flags.value("-r --rules", "FILE|-", "When a node is marked, and how (MarkingRules).", flags.FILE, required=True)
@flags.cluster_options
@click.option("--dry-run", is_flag=True, help="Say which nodes would be marked, and change nothing.")
@flags.duration("--interval", "From evaluation to evaluation; 0 evaluates once and ends.", "0")
@flags.output_option("table", "json", show_default=False, help="The report.")
@flags.log_format_option
@flags.strict_option
@service_flags
@flags.logged
def mark(rules: str, output: str, log_format: str, **options: Any) -> None:  # noqa: ARG001  the log has its format
    """Mark nodes that are under pressure, for as long as it lasts, so that the scheduler prefers others.

    Labels and soft taints are set and taken off; no pod is evicted. The Lease is rebalancer-mark by default.

    Exit codes: 0 nodes are marked as the rules say; 1 a source did not answer, or a node could not be changed;
    2 bad usage, policy or rules; 3 no cluster, or a permission is missing; 130 and 143 SIGINT or SIGTERM came.
    """
    with Interruption("before a node was changed") as interruption:
        from rebalancer.report.marking import marking_lines  # noqa: PLC0415
        from rebalancer.run.marking import mark as marking  # noqa: PLC0415

        asked = Options(**options)
        is_loop = bool(asked.interval)

        def delivered(outcome: Outcome) -> int:
            report = outcome.report
            wrong = [*report["warnings"], *(each for each in report["rules"] if each["problem"])]
            news = [each for each in report["nodes"] if each["problem"] or each["change"] not in ("", "renewed")]
            if output == "json":
                click.echo(json.dumps(report, indent=None if is_loop else 2))
            elif not is_loop or news or wrong:
                click.echo("\n".join(marking_lines(report)))
            return outcome.exit_code

        sys.exit(marking(rules, asked, delivered, interruption))


release_options = flags.options(  # how a command finds its cluster, and what a release there keeps between its runs
    flags.cluster_options,
    flags.packed(
        "lease",
        LeaseOptions,
        flags.value(
            "--leader-elect-resource-namespace", "NAMESPACE", "Of both.", **flags.shown(_USUAL.resource_namespace)
        ),
        flags.value("--memory", "NAME", "The ConfigMap in which the runs remember.", **flags.shown(_USUAL.memory)),
        flags.value("--leader-elect-resource-name", "NAME", "Their Lease.", **flags.shown(_USUAL.resource_name)),
        prefix="leader_elect_",
    ),
)


@click.command(short_help="Remove from nodes what runs have left there: soft taints, labels.")
@release_options
@flags.flag("--all everything", "Also marks that have not expired: a run may still rely on them.")
@click.option("--dry-run", is_flag=True, help="Say what would be taken off, and change nothing.")
@flags.value(
    "--key", "KEY", "Of the soft taints of steered runs, as the policy has it.", **flags.shown("kube-rebalancer/avoid")
)
@flags.value(
    "--mark",
    "KEY[=VALUE]",
    "The label or soft taint of `rebalancer mark`, by its rules.",
    **flags.shown("kube-rebalancer/pressure"),
)
@flags.logged
def unmark(key: str, mark: str, *, client: ClientOptions, lease: LeaseOptions, everything: bool, dry_run: bool) -> None:
    """Remove from nodes what steered runs, --hold and `rebalancer mark` have left: soft taints, labels, annotations.

    Exit codes: 0 nothing is left but what a run may rely on; 2 bad usage; 3 no cluster; 4 marks stay on nodes.
    """
    with Interruption("while marks came off") as interruption:
        from rebalancer.run.standing import unmark as taking_off  # noqa: PLC0415

        lines, exit_code = taking_off(client, lease, key, mark, interruption, everything=everything, dry_run=dry_run)
    click.echo("\n".join(map(printable, lines)))
    sys.exit(exit_code)


def _standing(command: flags.Command) -> flags.Command:
    """Let a command take the options that lead to a cluster, and hand on what it reads and writes there."""

    @wraps(command)
    def on_cluster(client: ClientOptions, lease: LeaseOptions, **given: Any) -> None:
        from rebalancer.run.standing import Standing  # noqa: PLC0415

        with Interruption("before anything was changed"):
            command(Standing(client, lease), **given)

    return release_options(flags.logged(on_cluster))


_target = flags.options(
    flags.value("-n --namespace", "NAMESPACE", "Only pods of this namespace."),
    flags.value("--owner", "KIND/NAME", "Only pods of this owner, like Deployment/web; with --namespace."),
)


@click.group(short_help="Show or clear what cycles remember.")
def memory() -> None:
    """Show or clear what earlier cycles have left to remember."""


@memory.command()
@_standing
def show(standing: "Standing") -> None:
    """Print the memory as JSON: moves, stopped owners, what was measured of nodes, the breaker."""
    click.echo(json.dumps(standing.document(), indent=2))


@memory.command()
@click.argument("owner", required=False)
@_standing
def clear(standing: "Standing", owner: str | None) -> None:
    """Forget everything, or one OWNER, named like shop/Deployment/web."""
    click.echo(printable(standing.clear(owner)))


@click.group(short_help="Close the breaker by hand.")
def breaker() -> None:
    """Close the breaker by hand."""


@breaker.command()
@_standing
def reset(standing: "Standing") -> None:
    """Close the breaker, and let owners lose pods again whose replacements have failed."""
    click.echo(standing.reset())


@click.command(short_help="Let runs evict nothing for a while.")
@_target
@flags.duration("--for lasting", "For so long, like 2h; else until resumed.")
@flags.value("--reason", "TEXT", "Why: reports and `rebalancer status` show it.", default="")
@_standing
def pause(standing: "Standing", namespace: str | None, owner: str | None, lasting: float | None, reason: str) -> None:
    """Let runs evict nothing for a while, also one that is at work: it looks again before each eviction."""
    duration = None if lasting is None else timedelta(seconds=lasting)
    click.echo(printable(standing.pause(namespace, owner, duration, reason)))
    complain("Note: runs by policies that remember nothing, as without `trust`, do not heed it (docs/trust.md)")


@click.command(short_help="End a pause.")
@_target
@_standing
def resume(standing: "Standing", namespace: str | None, owner: str | None) -> None:
    """End a pause: of all runs, of a namespace, or of an owner."""
    click.echo(printable(standing.resume(namespace, owner)))


@click.command(short_help="Say what the levels of `appetite` mean.")
@flags.logged
def appetite() -> None:
    """Say what the levels of a policy's key `appetite` mean."""
    from rebalancer.policy.values import appetite_lines  # noqa: PLC0415

    click.echo("\n".join(appetite_lines()))


@click.command(short_help="Say what stands in the way of runs.")
@_standing
def status(standing: "Standing") -> None:
    """Say what stands in the way of runs: pauses, the breaker, stopped owners."""
    click.echo("\n".join(map(printable, standing.status())))
