"""The command line: options in, exit code out, no logic.

Everything heavy is imported inside the commands, so that `--help` answers at once.
"""

import io
import json
import sys
from datetime import timedelta

import click
from click.shell_completion import get_completion_class

from rebalancer import __version__
from rebalancer.cli import options as flags
from rebalancer.cli.group import Spelled
from rebalancer.cli.inspection import doctor, explain, recommend, report
from rebalancer.cli.logs import complain, exit_on_error
from rebalancer.cli.plan import apply, diff, plan, run
from rebalancer.cli.standing import appetite, breaker, mark, memory, pause, release_options, resume, status, unmark
from rebalancer.errors import UsageError
from rebalancer.report.layout import plural
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import ClientOptions, LeaseOptions
from rebalancer.untrusted.printable import printable

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Spelled, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="rebalancer")
def main() -> None:
    """Even out the load of Kubernetes nodes: decide which pods should move, and evict them.

    `rebalancer presets` lists policies to begin with; `rebalancer run --policy PRESET --dry-run` changes nothing.

    Exit codes: 0 the cycle ran to its end; 1 it did, but a strategy or an eviction failed and nothing can have been
    evicted; 2 bad usage or policy; 3 no cluster, or no permission to begin; 4 soft taints stay on nodes; 10 there is
    something to do (only with --detailed-exitcode); 130 and 143 SIGINT or SIGTERM came (in a pod: before anything was
    evicted).
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have characters that its encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")


@main.command(short_help="Check policies without a cluster.")
@flags.policies_option
@click.option("--lenient", is_flag=True, help="Let warnings pass.")
@flags.scheduler_config_option
@exit_on_error
def validate(named: tuple[str, ...], scheduler_config: str | None, *, lenient: bool) -> None:
    """Check policies without a cluster; what the descheduler would silently ignore is an error."""
    from rebalancer.run.policies import read_policy  # noqa: PLC0415
    from rebalancer.run.work import read_scheduler  # noqa: PLC0415

    exit_code = 0
    complain(*(f"Warning: {warning}" for warning in read_scheduler(scheduler_config).warnings))
    for name in named:
        try:
            loaded = read_policy(name, strict=not lenient)
        except UsageError as error:
            complain(f"Error: {error}")
            exit_code = error.exit_code
            continue
        complain(*(f"Warning: {problem}" for problem in loaded.warnings))
        profiles = loaded.policy.profiles
        names = [strategy for profile in profiles for strategy in (*profile.deschedule, *profile.balance)]
        told = f"{plural(len(profiles), 'profile')}, strategies {', '.join(names) or 'none'}"
        click.echo(f"{printable(name)} is valid: {told}")
    sys.exit(exit_code)


@main.command(short_help="Write a v1alpha1 policy as v1alpha2.")
@click.argument("policy", type=flags.POLICY, metavar="FILE|-")
@exit_on_error
def convert(policy: str) -> None:
    """Write a policy `descheduler/v1alpha1` as `descheduler/v1alpha2`, which real usage and steering need.

    Comments at the top say what had no effect or reads otherwise.
    """
    from rebalancer.run import policies  # noqa: PLC0415

    click.echo(policies.convert(policy), nl=False)


@main.command()
@release_options
@flags.value("-o --output path", "FILE|-", "Where to; gzipped if it ends in .gz.", flags.FILE, required=True)
@flags.logged
def snapshot(path: str, *, client: ClientOptions, lease: LeaseOptions) -> None:
    """Write the live cluster to a file that `run --snapshot` reads.

    Only what a decision may look at is in it, and only its owner may read it.
    """
    with Interruption():
        from rebalancer.cli.terminal import progress_for  # noqa: PLC0415
        from rebalancer.run.capture import capture  # noqa: PLC0415

        counts, warnings = capture(client, path, progress_for("table", flags.verbosity(), log_as_json=False), lease)
    complain(*(f"Warning: {warning}" for warning in warnings))
    click.echo(f"{printable(path)}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}", err=path == "-")


@main.command()
@flags.cluster_options
@flags.value("--out", "FOLDER", "Where to; a file for each day is in it.", flags.FILE, required=True)
@flags.duration("--keep", "Remove files of days longer ago.", "720h")
@flags.logged
def record(out: str, keep: float, *, client: ClientOptions) -> None:
    """Append to a folder what containers use now.

    metrics-server is asked, and `recommend --samples` reads the folder. Run it every five minutes, for example as a
    CronJob. Several may write to one folder.
    """
    from rebalancer.run.sample_folder import record as record_now  # noqa: PLC0415

    with Interruption():
        path, found = record_now(client, out, timedelta(seconds=keep))
    click.echo(f"{printable(str(path))}: {plural(found, 'container')} recorded")


@main.command()
@click.argument("name", type=flags.STRATEGY, required=False)
@exit_on_error
def strategies(name: str | None) -> None:
    """List the strategies, or explain one of them."""
    from rebalancer.run.policies import describe_strategy, list_strategies  # noqa: PLC0415

    click.echo("\n".join(describe_strategy(name) if name else list_strategies()))


@main.command(short_help="List the presets (policies that are ready to use), or print one.")
@click.argument("name", type=flags.PRESET, required=False)
@exit_on_error
def presets(name: str | None) -> None:
    """List the presets, or print one of them, to use as it is or to start from."""
    from rebalancer.run.policies import describe_preset, list_presets  # noqa: PLC0415

    click.echo(describe_preset(name) if name else "\n".join(list_presets()))


@main.command(short_help="Print the JSON schema of a policy or another document.")
@click.argument("document", type=click.Choice(["policy", "plan", "report", "log", "marking-rules"]), default="policy")
@exit_on_error
def schema(document: str) -> None:
    """Print the JSON schema of a policy or another DOCUMENT, for editors and checks."""
    from rebalancer.run.policies import schema_of  # noqa: PLC0415

    click.echo(json.dumps(schema_of(document), indent=2))


@main.command()
def version() -> None:
    """Print the version."""
    click.echo(f"rebalancer {__version__}")


@main.command(short_help="Print what makes a shell complete commands and options.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete commands and options, as in `source <(rebalancer completion bash)`."""
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(context.find_root().command, {}, "rebalancer", "_REBALANCER_COMPLETE").source())


_STANDING = (mark, unmark, memory, pause, resume, status, breaker, appetite)
for _command in (run, plan, apply, diff, doctor, explain, report, recommend, *_STANDING):
    main.add_command(_command)
