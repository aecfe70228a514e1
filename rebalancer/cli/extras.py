"""Commands that people of kubectl and the descheduler look for: version, help, completion."""

import click
from click.shell_completion import get_completion_class

from rebalancer import __version__

_PROGRAM = "rebalancer"
_VARIABLE = "_REBALANCER_COMPLETE"


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"{_PROGRAM} {__version__}")


@click.command("help")
@click.argument("command", required=False)
@click.pass_context
def help_(context: click.Context, command: str | None) -> None:
    """Explain the program, or one of its commands."""
    parent = context.find_root()
    group = parent.command
    assert isinstance(group, click.Group)
    if command is None:
        click.echo(group.get_help(parent))
        return
    found = group.get_command(parent, command)
    if found is None:
        raise click.UsageError(f"there is no command {command!r}: {', '.join(group.list_commands(parent))}")
    click.echo(found.get_help(click.Context(found, info_name=command, parent=parent)))


@click.command(short_help="Print what makes a shell complete commands and options.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options, as in `source <(rebalancer completion bash)`."""
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())
