"""Options that several commands take."""

import logging
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from rebalancer.cli.completing import CONTEXT, FILE, POLICY
from rebalancer.cli.service_flags import Seconds
from rebalancer.run.options import CHANGES, ClientOptions

Command = Callable[..., None]

_LOG = logging.getLogger(__name__)


class _SecondsOrNumber(Seconds):
    """A duration; a number alone is seconds, as kubectl has it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        return float(value) if isinstance(value, str) and value.isdecimal() else super().convert(value, param, ctx)


def client_options(command: Command) -> Command:
    """Let a command take them, packed as `client`."""

    @wraps(command)
    def wrapper(*args: Any, **given: Any) -> None:
        client = ClientOptions(**{each.name: given.pop(each.name) for each in fields(ClientOptions)})
        command(*args, client=client, **given)

    flagged: Command = wrapper
    for option in reversed(_OPTIONS):
        flagged = option(flagged)
    return flagged


def warn_of_insecurity(client: ClientOptions) -> None:
    """Say what it means that the API server's certificate is not looked at."""
    if client.insecure_skip_tls_verify:
        _LOG.warning(
            "--insecure-skip-tls-verify: the API server's certificate is not looked at; whoever stands in between can "
            "take the credentials and make up the answers"
        )


_OPTIONS = (
    click.option("--as", "as_user", default="", metavar="USER", help="Act as this user, if the API server allows it."),
    click.option(
        "--as-group", multiple=True, metavar="GROUP", help="Act in this group; may be repeated, and goes with --as."
    ),
    click.option(
        "--request-timeout",
        type=_SecondsOrNumber(),
        default="30s",
        show_default=True,
        metavar="DURATION",
        help="Give a request up after so long without a sign of the API server; 0 for 5m.",
    ),
    click.option(
        "--exec-timeout",
        type=_SecondsOrNumber(),
        default="60s",
        show_default=True,
        metavar="DURATION",
        help="Give a credentials plugin up after so long.",
    ),
    click.option(
        "--insecure-skip-tls-verify", is_flag=True, help="Do not look at the API server's certificate (dangerous)."
    ),
)


class _Verbosity(click.IntRange):
    """A number that may also be written as in `-v=2`, as the descheduler's command line takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(number, param, ctx)


def _one(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str:  # noqa: ARG001  click's
    """Return the one policy; of two, neither is silently left out."""
    if len(given) > 1:
        raise click.UsageError("there are several policies: give one")
    return given[0]


def _policy(dest: str, **more: Any) -> Callable[[Command], Command]:
    return click.option(
        "--policy-config-file",
        "--policy",
        dest,
        required=True,
        multiple=True,
        type=POLICY,
        metavar="FILE|PRESET",
        help="The DeschedulerPolicy: a file, - for standard input, or the name of a preset.",
        **more,
    )


policy_option = _policy("policy", callback=_one)
policies_option = _policy("named")
scheduler_config_option = click.option(
    "--scheduler-config",
    type=FILE,
    metavar="FILE|-",
    help="The scheduler's KubeSchedulerConfiguration; without it, its defaults count.",
)
kubeconfig_option = click.option(
    "--kubeconfig",
    "--client-connection-kubeconfig",
    type=FILE,
    metavar="FILE",
    help="The kubeconfig; else KUBECONFIG, ~/.kube/config, and in a pod its service account.",
)
context_option = click.option(
    "--context", type=CONTEXT, metavar="NAME", help="The context of the kubeconfig; else its current one."
)
detailed_option = click.option(
    "--detailed-exitcode", is_flag=True, help=f"Exit with {CHANGES} if there is something to do, with 0 if not."
)
verbosity_option = click.option(
    "-v",
    "--v",
    "verbosity",
    type=_Verbosity(min=0),
    default=0,
    metavar="N",
    help="Say more: 0 to 5; 1 lists all, 2 says what is done.",
)
