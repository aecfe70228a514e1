"""The commands that decide: `run`, `plan`, `apply` and `diff`."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rebalancer.cli import options as flags
from rebalancer.cli.group import descheduler_flags, service_flags
from rebalancer.cli.logs import complain
from rebalancer.cli.standing import release_options
from rebalancer.errors import UsageError
from rebalancer.report.layout import plural
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import CHANGES, Options, Outcome, in_pod
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.cluster.cluster import Cluster
    from rebalancer.report.plan import Plan
    from rebalancer.report.view import Color
    from rebalancer.run.work import Work

T = TypeVar("T")
OUTPUTS = ("table", "wide", "json", "yaml", "html")
_OUTPUT = "The report; wide lists every pod; default: table, with --log-format json an object a line."
_PARALLEL = "Eviction requests under way at once, where their order does not matter: never of strategies that balance."
_HOLD = "Keep nodes that selection: compaction empties empty for so long, by a soft taint; as `hold` in the policy."


@click.command(short_help="Run one cycle, or a loop of cycles.")
@flags.policy_option
@flags.cluster_options
@flags.dry_run_option
@flags.value("--snapshot", "FILE|-", "Work on a cluster file instead of a cluster; always a dry run.", flags.FILE)
@flags.value("--now", "TIME", "The clock of the cycle, RFC 3339; goes with --snapshot.")
@flags.output_option(*OUTPUTS, default=None, show_default=False, help=_OUTPUT)
@flags.value("--color", None, "auto: on a terminal.", click.Choice(["auto", "always", "never"]), **flags.shown("auto"))
@flags.log_format_option
@flags.strict_option
@flags.duration("--descheduling-interval", "0 runs one cycle and ends.", "0", type=str)
@flags.duration("--deadline", "No eviction later after the snapshot.", "5m", type=str)
@click.option("--fail-on-error", is_flag=True, help="Exit with 1 also where a failed run has evicted something.")
@flags.detailed_option
@flags.yes_option
@flags.value("--max-evictions", "N", "No more in one cycle, whatever the policy allows.", click.IntRange(min=0))
@flags.value("--max-parallel", "N", _PARALLEL, click.IntRange(min=1), **flags.shown(1))
@flags.scheduler_config_option
@click.option("--steer", is_flag=True, help="Steer replacements by soft taints, as with `steering` in the policy.")
@flags.value("--hold", "DURATION", _HOLD)
@service_flags
@descheduler_flags
@flags.logged
def run(
    output: str | None,
    log_format: str,
    descheduling_interval: str,
    deadline: str,
    color: "Color",
    *,
    yes: bool,
    hold: str | None,
    **options: Any,
) -> None:
    """Run one cycle: read the policy, look at the cluster, and evict the pods that should move."""
    shape = output or ("lines" if log_format == "json" else "table")
    with Interruption() as interruption:
        from rebalancer.run.policies import policy_text  # noqa: PLC0415

        asked = Options(
            policy_text=policy_text(options["policy"]) if shape == "html" else None,
            deadline=_value("--deadline", deadline, flags.seconds),
            interval=_value("--descheduling-interval", descheduling_interval, flags.seconds),
            hold=_held_for(hold),
            **options,
        )
        sys.exit(carry_out(asked, shape, interruption, yes=yes, color=color))


def _held_for(text: str | None) -> timedelta | None:
    from rebalancer.policy.moving import parse_hold  # noqa: PLC0415  `--help` answers at once

    return None if text is None else _value("--hold", text, parse_hold)


def _value(option: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None  # unlike click's own, an object with --log-format json


@click.command(short_help="Write to a file what a run would do.")
@flags.policy_option
@release_options
@flags.file_option
@flags.now_option
@flags.value("--out", "FILE|-", "Where to; YAML if it ends in .yaml.", flags.FILE, default="-")
@click.option("--summary", type=click.Choice(["markdown"]), help="Print a summary instead, for a pull request.")
@flags.value("--max-evictions", "N", "As for `run`.", click.IntRange(min=0))
@flags.value("--hold", "DURATION", "As for `run`.")
@flags.scheduler_config_option
@flags.steer_option
@flags.detailed_option
@flags.logged
def plan(out: str, summary: str | None, hold: str | None, *, detailed_exitcode: bool, **options: Any) -> None:
    """Write what a run would do to a file: its moves in order, with their premises.

    Exit codes: 0 the plan was made; 1 a strategy failed; 2 bad usage or policy; 3 no cluster; with --detailed-exitcode
    10 if the plan has moves.
    """
    made, code = _planned(hold=_held_for(hold), **options)
    if summary:
        from rebalancer.report.plan import markdown  # noqa: PLC0415  `--help` answers at once

        click.echo("\n".join(markdown(made)))
    if not summary or out != "-":
        if out.endswith((".yaml", ".yml")):
            import yaml  # noqa: PLC0415  as above

            text = yaml.safe_dump(made.document(), sort_keys=False, allow_unicode=True)
        else:
            text = json.dumps(made.document(), indent=2) + "\n"
        write_out(text, out)
    if out != "-":
        click.echo(f"{printable(out)}: {plural(len(made.moves), 'move')}", err=True)
    sys.exit(code or (CHANGES if detailed_exitcode and made.moves else 0))


@click.command(short_help="Carry out a plan: what still holds of it, and nothing else.")
@click.argument("path", type=flags.FILE, metavar="PLAN")
@flags.policy_option
@flags.cluster_options
@flags.file_option
@flags.now_option
@flags.dry_run_option
@flags.value("--only", "PATTERN", "Moves of these pods alone: `team-a/*`; repeatable.", multiple=True)
@flags.value("--exclude", "PATTERN", "No moves of these pods; repeatable.", multiple=True)
@flags.duration("--max-age", "Refuse an older plan.", "30m")
@flags.flag("--force-premises", "Evict also what no strategy picks any more; protections hold as ever.")
@flags.output_option("table", "wide", "json", "yaml", show_default=False, help="The report.")
@flags.duration("--deadline", "As for `run`.", "5m")
@flags.yes_option
@flags.scheduler_config_option
@service_flags
@flags.logged
def apply(
    path: str,
    policy: str,
    only: Iterable[str],
    exclude: Iterable[str],
    max_age: float,
    output: str,
    *,
    force_premises: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Carry out a plan on the cluster that it was made for: every premise is checked again on the cluster as it is.

    What no longer holds is skipped with its reason; nothing that is not in the plan is evicted.

    Exit codes are those of `run`.
    """
    from rebalancer.report.plan import policy_hash  # noqa: PLC0415  `--help` answers at once
    from rebalancer.run.planned import ChosenPart  # noqa: PLC0415
    from rebalancer.run.policies import policy_text  # noqa: PLC0415

    read = _read(path)
    if policy == path == "-":
        raise UsageError("the plan and --policy cannot both be standard input")
    text = policy_text(policy)
    if policy_hash(text) != read.policy.hash:  # a weaker one must not slip in
        raise UsageError(f"plan {path} was made with another policy than {policy}: give that one, or make a new plan")
    moves = read.picked(only, exclude)
    if read.moves and not moves:
        raise UsageError("--only and --exclude leave no move of the plan")
    chosen = ChosenPart(read, moves, timedelta(seconds=max_age), force_premises)
    given = read.options
    with Interruption() as interruption:
        asked = replace(
            Options(policy=policy, policy_text=text, chosen=chosen, identify=True, **options),
            steer=given.steer,
            hold=given.hold,
            max_evictions=given.max_evictions,
        )
        sys.exit(carry_out(asked, output, interruption, yes=yes))


@click.command(short_help="Compare two plans, two policies, or two snapshots.")
@click.argument("first", type=flags.FILE, metavar="A")
@click.argument("second", type=flags.FILE, metavar="B")
@flags.value("--policy", "FILE|PRESET", "A and B are snapshots, both under this policy.", flags.POLICY)
@release_options
@flags.value("--snapshot", "FILE", "A and B are policies, both on this cluster file.", flags.FILE)
@flags.scheduler_config_option
@flags.output_option("table", "json")
@flags.detailed_option
@flags.logged
def diff(
    first: str,
    second: str,
    policy: str | None,
    snapshot: str | None,
    output: str,
    *,
    detailed_exitcode: bool,
    **options: Any,
) -> None:
    """Compare what would move: two plans, two policies (on --snapshot, else on the cluster), or two snapshots.

    `-` is a move of A alone, `+` one of B alone, `~` one with another destination.

    Exit codes: 0 both could be made; 1 a strategy failed; 2 bad usage or policy; 3 no cluster; with --detailed-exitcode
    10 if they differ.
    """
    from rebalancer.report.plan import difference, difference_lines, moves_apart  # noqa: PLC0415  as above

    if policy and snapshot:
        raise UsageError("--policy compares two snapshots and --snapshot two policies: give one of the two")
    if [first, second, policy, options["scheduler_config"]].count("-") > 1 or snapshot == "-":
        raise UsageError("only one of A, B, --policy and --scheduler-config can be standard input, --snapshot never")
    if policy:
        pair = [_planned(policy=policy, snapshot=each, **options) for each in (first, second)]
    elif snapshot or not (_is_plan(first) or _is_plan(second)):
        pair = [_planned(policy=each, snapshot=snapshot, **options) for each in (first, second)]
    else:
        pair = [(_read(each), 0) for each in (first, second)]
    (one, code), (other, other_code) = pair
    as_json = output == "json"
    lines = [json.dumps(difference(one, other), indent=2)] if as_json else map(printable, difference_lines(one, other))
    click.echo("\n".join(lines))
    sys.exit(code or other_code or (CHANGES if detailed_exitcode and any(moves_apart(one, other)) else 0))


def _planned(**options: Any) -> tuple["Plan", int]:
    from rebalancer.report.plan import PlanOptions  # noqa: PLC0415  as above
    from rebalancer.run.planned import make_plan  # noqa: PLC0415

    asked = dry_options(identify=True, **options)
    outcome, cluster, work = dry_run(asked)
    given = PlanOptions(steer=asked.steer, hold=asked.hold, max_evictions=asked.max_evictions)
    made = make_plan(outcome.report, cluster, work.plans, (asked.policy, asked.policy_text or ""), given)
    complain(*(f"Warning: {warning}" for warning in outcome.report["warnings"]))
    return made, outcome.exit_code


def dry_options(**given: Any) -> Options:
    """Return what a dry run is asked to do whose policy is read once."""
    from rebalancer.run.policies import policy_text  # noqa: PLC0415  as above

    return Options(policy_text=policy_text(given["policy"]), dry_run=True, **given)


def dry_run(asked: Options) -> tuple[Outcome, "Cluster", "Work"]:
    """Run one cycle that changes nothing and asks nobody."""
    from rebalancer.run import start  # noqa: PLC0415  as above

    with Interruption() as interruption:
        outcome = start.run(asked, None, interruption)
    assert outcome.cluster is not None
    assert outcome.work is not None
    return outcome, outcome.cluster, outcome.work


def carry_out(asked: Options, output: str, interruption: Interruption, *, yes: bool, color: "Color" = "auto") -> int:
    """Run cycles, show each report, and return the exit code; a lost report fails no run that has evicted."""
    from rebalancer.cli.terminal import progress_for, question  # noqa: PLC0415  as above
    from rebalancer.report.delivery import deliver, undelivered  # noqa: PLC0415
    from rebalancer.run import start  # noqa: PLC0415

    def delivered(outcome: Outcome) -> int:
        report: Mapping[str, Any] = outcome.report
        if output == "html":
            from rebalancer.report.plan import plan_policy  # noqa: PLC0415

            policy = plan_policy(asked.policy, asked.policy_text or "")
            report = {**report, "policy": policy.model_dump(by_alias=True)}
        trouble = deliver(report, output, sys.stdout, everything=flags.verbosity() > 0, color=color)
        if not trouble:
            return outcome.exit_code
        complain(f"Error: {undelivered(report, trouble)}", longest=sys.maxsize)
        return outcome.exit_code if report["evictions"] and not report["dryRun"] else 1

    log_as_json = click.get_current_context().params.get("log_format") == "json"
    person = None if yes or in_pod() else question
    progress = progress_for(output, flags.verbosity(), log_as_json=log_as_json, color=color)
    if not asked.interval:
        return start.run(asked, person, interruption, progress=progress, deliver=delivered).exit_code
    from rebalancer.run.loop import run_loop  # noqa: PLC0415  the API client is not needed offline

    run_loop(asked, person, delivered, interruption, progress)
    return 0


def write_out(text: str, out: str) -> None:
    """Write a text in UTF-8 to the file that `--out` names, `-` for standard output."""
    if out == "-":
        click.echo(text.encode(), nl=False)
        return
    try:
        Path(out).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error.strerror}") from None


def _read(path: str) -> "Plan":
    from rebalancer.report.plan import read_plan  # noqa: PLC0415  as above
    from rebalancer.run.policies import settings_text  # noqa: PLC0415

    return read_plan(settings_text(path, "plan", f"there is no plan {path}"), path)


def _is_plan(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return b'"Plan"' in (text := file.read(4096)) or b"kind: Plan" in text
    except OSError:
        return False
