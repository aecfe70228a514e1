"""The group of commands, with arguments spelled as manifests of the descheduler and users of kubectl spell them."""

import click

from rebalancer.cli.spelling import spelled, with_command

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
