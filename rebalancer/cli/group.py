"""The group of commands, with arguments spelled as manifests of the descheduler and users of kubectl spell them.

The descheduler's command line follows Go's: `--policy_config_file`, `--dry-run=true`, `-v=2`, no subcommand.
kubectl's habits are understood too: `-vv`.
"""

import re
from collections.abc import Collection, Iterator, Sequence

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
