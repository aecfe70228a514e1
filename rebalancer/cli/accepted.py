"""The descheduler's flags without a meaning here: accepted with a line that says what became of each."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

import click

from rebalancer.cli.descheduler_flags import ACCEPTED, GONE, Flag

Command = Callable[..., None]

_LOG = logging.getLogger(__name__)
_KEY = "rebalancer.accepted"


def descheduler_flags(command: Command) -> Command:
    """Let a command accept them; none is handed on to it."""
    for flag in reversed(ACCEPTED):
        command = _accepted(flag)(command)
    for name, cure in GONE.items():
        command = _gone(name, cure)(command)
    return command


def tell_of_accepted(context: click.Context) -> None:
    """Log a line for each of them that was given."""
    told: Iterable[str] = context.meta.get(_KEY, ())
    for line in told:
        _LOG.warning("%s", line)


def _accepted(flag: Flag) -> Callable[[Command], Command]:
    def remember(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            context.meta.setdefault(_KEY, []).append(f"{flag.name} changes nothing: {flag.outcome}")

    return _hidden(flag.name, remember, switch=flag.switch)


def _gone(name: str, cure: str) -> Callable[[Command], Command]:
    def refuse(_: click.Context, __: click.Parameter, value: Any) -> None:
        if value is not None:
            raise click.UsageError(f"{name} is a flag of old versions of the descheduler: {cure}")

    return _hidden(name, refuse, switch=True)


def _hidden(name: str, callback: Callable[..., None], *, switch: bool) -> Callable[[Command], Command]:
    # A switch may have a value too, as Go's programs take it: `--flag=true`.
    value: Any = {"is_flag": False, "flag_value": "true"} if switch else {}
    return click.option(name, hidden=True, expose_value=False, callback=callback, **value)
