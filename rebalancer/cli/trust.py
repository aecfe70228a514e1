"""The commands about what stands over: `memory`, `pause`, `resume`, `status`, `breaker`; and `appetite`."""

import json
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rebalancer.cli.options import NAMESPACE, Command, cluster_options, duration, logged, options, packed, value
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import ClientOptions, LeaseOptions
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.run.standing import Standing


def _standing(command: Command) -> Command:
    """Let a command take the options that lead to a cluster, and hand on what it reads and writes there."""

    @wraps(command)
    def on_cluster(
        kubeconfig: str | None, context: str | None, client: ClientOptions, lease: LeaseOptions, **given: Any
    ) -> None:
        from rebalancer.run.standing import Standing  # noqa: PLC0415

        with Interruption("before anything was changed"):
            command(Standing(kubeconfig, context, client, lease), **given)

    return _WHERE(logged(on_cluster))


_WHERE = options(
    cluster_options,
    packed(
        "lease",
        LeaseOptions,
        value(
            "--leader-elect-resource-namespace resource_namespace",
            "NAMESPACE",
            "The namespace of both.",
            default="kube-system",
            show_default=True,
        ),
        value(
            "--memory",
            "NAME",
            "The ConfigMap in which the runs remember.",
            default="kube-rebalancer-memory",
            show_default=True,
        ),
        value(
            "--leader-elect-resource-name resource_name",
            "NAME",
            "The Lease of the runs.",
            default="rebalancer",
            show_default=True,
        ),
    ),
)
_target = options(
    value("-n --namespace", "NAMESPACE", "Only pods of this namespace.", NAMESPACE, default=""),
    value("--owner", "KIND/NAME", "Only pods of this owner, like Deployment/web.", default=""),
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
@click.argument("owner", required=False, default="")
@_standing
def clear(standing: "Standing", owner: str) -> None:
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
@duration("--for lasting", "For so long, like 2h; else until resumed.")
@value("--reason", "TEXT", "Why: reports and `rebalancer status` show it.", default="")
@_standing
def pause(standing: "Standing", namespace: str, owner: str, lasting: float | None, reason: str) -> None:
    """Let runs evict nothing for a while, also one that is at work: it looks again before each eviction."""
    from rebalancer.run.standing import PausedPart  # noqa: PLC0415

    duration = None if lasting is None else timedelta(seconds=lasting)
    click.echo(printable(standing.pause(PausedPart(namespace, owner), duration, reason)))


@click.command(short_help="End a pause.")
@_target
@_standing
def resume(standing: "Standing", namespace: str, owner: str) -> None:
    """End a pause: of all runs, of a namespace, or of an owner."""
    from rebalancer.run.standing import PausedPart  # noqa: PLC0415

    click.echo(printable(standing.resume(PausedPart(namespace, owner))))


@click.command(short_help="Say what the levels of `appetite` mean.")
@logged
def appetite() -> None:
    """Say what the levels of a policy's key `appetite` mean."""
    from rebalancer.policy.values import appetite_lines  # noqa: PLC0415

    for line in appetite_lines():
        click.echo(line)


@click.command(short_help="Say what stands in the way of runs.")
@_standing
def status(standing: "Standing") -> None:
    """Say what stands in the way of runs: pauses, the breaker, stopped owners."""
    for line in standing.status():
        click.echo(printable(line))
