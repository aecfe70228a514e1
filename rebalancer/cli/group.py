"""The descheduler's command line: the group of commands, its spellings, and its flags without a meaning here.

The descheduler's command line follows Go's: `--policy_config_file`, `--dry-run=true`, `-v=2`, no subcommand.
kubectl's habits are understood too: `-vv`.  A flag that changes nothing is accepted, and a line of log says what became
of it.  Source of the flags: descheduler v0.36.0, its command line.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

#: Source: Go's strconv.ParseBool.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})

_REPEATED_V = re.compile(r"-v{2,}")


def spelled(arguments: Sequence[str], switches: Collection[str]) -> list[str]:
    """Return the arguments with dashes for underscores, and switches without a value.

    Args:
        arguments: as they were given; what follows `--` stays as it is.
        switches: the options that take no value, like `--dry-run`.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    return [*_spelled(arguments[:end], switches), *arguments[end:]]


def _spelled(arguments: Sequence[str], switches: Collection[str]) -> Iterator[str]:
    for number, argument in enumerate(arguments):
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if _REPEATED_V.fullmatch(argument):
            yield from ("-v", str(len(argument) - 1))
        elif argument == "-v" and not re.fullmatch(r"=?\d+", following):
            yield from ("-v", "1")
        elif argument.startswith("--"):
            yield from _long(argument, switches)
        else:
            yield argument


def _long(argument: str, switches: Collection[str]) -> Iterator[str]:
    name, equals, value = argument.partition("=")
    name = name.replace("_", "-")
    if name in switches and value in _FALSE:
        return
    if name in switches and value in _TRUE:
        yield name
    else:
        yield name + equals + value


def with_command(arguments: Sequence[str], own: Collection[str]) -> list[str]:
    """Return the arguments beginning with a command; `run` where there is none, as the descheduler has it.

    Args:
        arguments: as they were given.
        own: the options of the program itself, like `--help`.
    """
    first = arguments[0] if arguments else ""
    if first.startswith("-") and first not in own:
        return ["run", *arguments]
    return list(arguments)


_OWN = ("--help", "-h", "--version")


class Spelled(click.Group):
    """A group that understands `--policy_config_file`, `--dry-run=true`, `-vv`, and flags without a command: `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, each in the spelling that is declared."""
        return super().parse_args(ctx, spelled(with_command(args, _OWN), self._switches()))

    def _switches(self) -> set[str]:
        """Return the options of all commands that take no value."""
        options = (each for command in self.commands.values() for each in command.params)
        return {name for each in options if isinstance(each, click.Option) and each.is_flag for name in each.opts}


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that is accepted and changes nothing.

    Attributes:
        name: with its dashes.
        outcome: what became of it, after the flag's name and a colon.
        switch: whether it takes no value.
    """

    name: str
    outcome: str
    switch: bool = False


_NO_THROTTLE = "requests are not throttled here; the API server's own fairness has the last word"
_HTTP2 = "health and metrics are served over HTTP/1.1"
_LOG_STREAM = "all logs go to standard error at once"

ACCEPTED = (
    Flag("--client-connection-qps", _NO_THROTTLE),
    Flag("--client-connection-burst", _NO_THROTTLE),
    Flag("--feature-gates", "there are no gates; evictions in the background are understood where a server makes them"),
    Flag("--enable-http2", _HTTP2, switch=True),
    Flag("--disable-http2-serving", _HTTP2, switch=True),
    Flag("--http2-max-streams-per-connection", _HTTP2),
    Flag("--permit-address-sharing", "the port is taken for this program alone", switch=True),
    Flag("--permit-port-sharing", "the port is taken for this program alone", switch=True),
    Flag("--cert-dir", "it has no effect in the descheduler either; give --tls-cert-file and --tls-private-key-file"),
    Flag("--tls-sni-cert-key", "one certificate is served whatever the name; give --tls-cert-file"),
    Flag("--tls-curve-preferences", "the curves are those that OpenSSL prefers"),
    Flag("--vmodule", "verbosity is one for all modules; use -v"),
    Flag("--log-flush-frequency", _LOG_STREAM),
    Flag("--log-text-split-stream", _LOG_STREAM, switch=True),
    Flag("--log-json-split-stream", _LOG_STREAM, switch=True),
    Flag("--log-text-info-buffer-size", _LOG_STREAM),
    Flag("--log-json-info-buffer-size", _LOG_STREAM),
)
"""In the order of the descheduler's help."""

#: Flags that very old versions of the descheduler had and v0.36.0 refuses, with what replaces each in a policy.
GONE = {
    "--evict-local-storage-pods": "set podProtections.defaultDisabled: [PodsWithLocalStorage] of DefaultEvictor",
    "--node-selector": "set nodeSelector at the top of the policy",
    "--max-pods-to-evict-per-node": "set maxNoOfPodsToEvictPerNode at the top of the policy",
}


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
