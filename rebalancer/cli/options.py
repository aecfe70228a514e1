"""Options of the commands: each is declared once, with what a shell completes of it.

Options that belong together are handed to a command as one value of `rebalancer.run.options`.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import wraps
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from rebalancer.cli.logs import exit_on_error, set_up
from rebalancer.errors import RebalancerError
from rebalancer.run.options import CHANGES, ClientOptions
from rebalancer.untrusted.address import AmbiguousUserinfo, read_address

Command = Callable[..., None]
Decorator = Callable[[Command], Command]
Given = dict[str, Any]
_LOG = logging.getLogger(__name__)


class Completed(click.ParamType[str]):
    """A text that a shell completes by the words that are `known`, given the other parameters; it never fails.

    With `missing`, which is said where it is required and not given, it may also be a file.
    """

    def __init__(self, name: str, known: Callable[[Given], Iterable[str]], missing: str = "") -> None:
        self.name, self.known, self._missing = name, known, missing

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:  # noqa: ARG002
        """Return what to say where it is required and not given."""
        return self._missing or None

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the words that begin so, and files if it may be one."""
        try:
            words = [CompletionItem(each) for each in sorted(self.known(ctx.params)) if each.startswith(incomplete)]
        except (RebalancerError, OSError, ValueError):
            words = []
        return words or (FILE.shell_complete(ctx, param, incomplete) if self._missing else [])


def _of(module: str) -> Any:
    return import_module(f"rebalancer.run.{module}")  # `--help` answers at once


FILE = click.Path(readable=False)
PRESET = Completed("preset", lambda _: _of("policies").presets())
POLICY = Completed(
    "policy", PRESET.known, missing="Give a file, or the name of a preset: `rebalancer presets` lists them."
)
STRATEGY = Completed("strategy", lambda _: _of("policies").known_plugins())
CONTEXT = Completed("context", lambda given: _of("live").contexts(given.get("kubeconfig")))


class _Parsed(click.ParamType[Any]):
    """A value that a function makes of a text; its ValueErrors are messages."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def seconds(text: str) -> float:
    """Return a duration such as `90s` or `1h30m` in seconds; raise ValueError if it is none."""
    from rebalancer.policy.arguments import parse_duration  # noqa: PLC0415  not needed for `--help`

    return parse_duration(text).total_seconds()


def _url(text: str) -> str:
    """Return a URL of http or https; without a scheme it is http.  A password is only taken for https."""
    url = text if "://" in text or not text else f"http://{text}"
    try:
        address = read_address(url) if url else None
    except AmbiguousUserinfo:
        raise
    except ValueError:
        raise ValueError("it is not a URL like http://HOST:PORT") from None
    if address and address.has_userinfo and not address.is_encrypted:
        raise ValueError(f"credentials are not sent to {address.url} over plain http: use https")
    return url


def _grpc_target(text: str) -> str:
    if "@" in text:
        raise ValueError("it is a host and a port, and has no user or password")
    return text


SECONDS = _Parsed("duration", seconds)
URL = _Parsed("url", _url)
GRPC_TARGET = _Parsed("target", _grpc_target)
#: A number alone is seconds, as kubectl has it.
_SECONDS_OR_NUMBER = _Parsed("duration", lambda text: seconds(f"{text}s" if text.isdecimal() else text))


def options(*decorators: Decorator) -> Decorator:
    """Return what gives a command several options, in this order."""

    def give(command: Command) -> Command:
        for each in reversed(decorators):
            command = each(command)
        return command

    return give


def packed(name: str, kind: type[Any], *decorators: Decorator, prefix: str = "") -> Decorator:
    """Return what gives a command several options, with or without the prefix, and hands them on as one value."""

    def give(command: Command) -> Command:
        @wraps(command)
        def packing(*args: Any, **given: Any) -> None:
            values = {each.name: given.pop(prefix + each.name, given.pop(each.name, None)) for each in fields(kind)}
            value = kind(**{each: found for each, found in values.items() if found is not None})
            command(*args, **{name: value}, **given)

        return options(*decorators)(packing)

    return give


class _Verbosity(click.IntRange):
    """A number that may also be written as in `-v=2`, as the descheduler's command line takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(number, param, ctx)


_ACCEPTED = "rebalancer.accepted"
_INSECURE = (
    "--insecure-skip-tls-verify: the API server's certificate is not looked at; whoever stands in between can take the "
    "credentials and make up the answers"
)


def accept(context: click.Context, told: str) -> None:
    """Remember what became of a flag that changes nothing, for the log."""
    context.meta.setdefault(_ACCEPTED, []).append(told)


def logged(command: Command) -> Command:
    """Let a command take `-v`, log as it says, and end the program with the message and code of an error of our own."""

    @wraps(command)
    def logging_(*args: Any, **given: Any) -> None:
        set_up(given.pop("verbosity"), as_json=given.get("log_format") == "json")
        for line in click.get_current_context().meta.get(_ACCEPTED, ()):
            _LOG.warning("%s", line)
        if "client" in given and given["client"].insecure_skip_tls_verify:
            _LOG.warning("%s", _INSECURE)
        command(*args, **given)

    return verbosity_option(exit_on_error(logging_))


def verbosity() -> int:
    """Return how much the command at work is to say."""
    return int(click.get_current_context().params["verbosity"])


def _one(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str:  # noqa: ARG001  click's
    if len(given) > 1:
        raise click.UsageError("there are several policies: give one")
    return given[0]


def _policy(dest: str, **more: Any) -> Decorator:
    text = "The DeschedulerPolicy: a file, - for standard input, or the name of a preset."
    names = f"--policy-config-file --policy {dest}"
    return value(names, "FILE|PRESET", text, POLICY, required=True, multiple=True, **more)


def output_option(*values: str, **more: Any) -> Decorator:
    """Return the option that says in which form something is shown, by default in the first one."""
    forms: Any = {"type": click.Choice(values), "default": values[0], "show_default": True, **more}
    return click.option("-o", "--output", **forms)


def shown(default: Any) -> Given:
    """Return what makes this the default of an option, and the help say so."""
    return {"default": default, "show_default": True}


def value(names: str, metavar: str | None, text: str, kind: Any = None, **more: Any) -> Decorator:
    """Return an option that takes a value; without a kind, a text."""
    return click.option(*names.split(), type=kind, metavar=metavar, help=text, **more)


def flag(names: str, text: str, **more: Any) -> Decorator:
    """Return an option that takes no value."""
    return click.option(*names.split(), is_flag=True, help=text, **more)


def duration(names: str, text: str, default: str | None = None, **more: Any) -> Decorator:
    """Return an option that takes a duration."""
    how: Any = {"type": SECONDS, "metavar": "DURATION", "default": default, "show_default": bool(default), **more}
    return click.option(*names.split(), help=text, **how)


def switch(names: str, text: str, **more: Any) -> Decorator:
    """Return an option that takes no value, or one as programs in Go accept it: `--flag` and `--flag=true`."""
    value: Any = {"is_flag": False, "flag_value": True, "metavar": "[=true|false]"}
    return click.option(*names.split(), type=bool, help=text, **value, **more)


policy_option = _policy("policy", callback=_one)
policies_option = _policy("named")
_SCHEDULER = "The scheduler's KubeSchedulerConfiguration; without it, its defaults count."
scheduler_config_option = value("--scheduler-config", "FILE|-", _SCHEDULER, FILE)
detailed_option = flag("--detailed-exitcode", f"Exit with {CHANGES} if there is something to do, with 0 if not.")
verbosity_option = value(
    "-v --v verbosity", "N", "Say more: 1 lists all, 2 and more say what is done.", _Verbosity(min=0), default=0
)
log_format_option = click.option(
    "--log-format", "--logging-format", type=click.Choice(["text", "json"]), default="text", help="Of log lines."
)
strict_option = flag("--strict", "Take warnings about the policy for errors.")
now_option = value("--now", "TIME", "The clock, RFC 3339; goes with --snapshot.")
file_option = value("--snapshot", "FILE|-", "Work on a cluster file instead of a cluster.", FILE)
dry_run_option = flag("--dry-run", "Say what would be evicted, and change nothing.")
steer_option = flag("--steer", "As for `run`.")
yes_option = flag("--yes", "Do not ask before a live run outside a pod.")
_KUBECONFIG = "The kubeconfig; else KUBECONFIG, ~/.kube/config, and in a pod its service account."
_TIMEOUT = "Give a request up after so long without a sign of the API server; 0 for 5m."
#: How a command finds its cluster, and what it asks that for, as one value.
cluster_options = packed(
    "client",
    ClientOptions,
    value("--kubeconfig --client-connection-kubeconfig", "FILE", _KUBECONFIG, FILE),
    value("--context", "NAME", "The context of the kubeconfig; else its current one.", CONTEXT),
    value("--as as_user", "USER", "Act as this user, if the API server allows it.", default=""),
    value("--as-group", "GROUP", "Act in this group; may be repeated, and goes with --as.", multiple=True),
    duration("--request-timeout", _TIMEOUT, "30s", type=_SECONDS_OR_NUMBER),
    duration("--exec-timeout", "Give a credentials plugin up after so long.", "60s", type=_SECONDS_OR_NUMBER),
    flag("--insecure-skip-tls-verify", "Do not look at the API server's certificate (dangerous)."),
)
