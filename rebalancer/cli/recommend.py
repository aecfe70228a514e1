"""The command `recommend`."""

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from rebalancer.cli import options as flags
from rebalancer.cli.logs import complain, exit_on_error, set_up
from rebalancer.errors import UsageError
from rebalancer.untrusted.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rebalancer.recommendation.workloads import Recommendation
    from rebalancer.run.recommend import PrometheusOptions

_HOW_TO_APPLY = {
    "--patches": "; read them, then `kubectl apply --server-side --field-manager=rebalancer-recommend -f` the folder. "
    "A conflict names who has set these amounts: take them out of there, and apply with --force-conflicts"
}
_policy_option = flags.value("--policy", "FILE|PRESET", "Or the Prometheus of a policy.", flags.POLICY)
_history_option = flags.duration("--history", "Of Prometheus: so long, until now.", "336h")
_now_option = flags.value("--now", "TIME", "The end of the history, RFC 3339; by default now.")


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[nodes|rules]",
    short_help="Recommend requests and limits from what containers used.",
)
@flags.value("--samples", "FOLDER", "What `kubectl top pods` printed, one file a time.", flags.FILE)
@flags.value("--prometheus", "URL", "Or a Prometheus that asks for no credentials.")
@_policy_option
@_history_option
@flags.duration("--step", "Of Prometheus: from sample to sample.", "5m")
@flags.value("--queries", "FILE", "How Prometheus is asked for cpu and memory, as YAML.", flags.FILE)
@flags.value("--cpu-query", "PROMQL", "Cores by namespace, pod and container; default: by cAdvisor.")
@flags.value("--memory-query", "PROMQL", "Bytes, by the same labels.")
@_now_option
@flags.value("--snapshot", "FILE", "Pods as JSON: what they request now, and who owns them.", flags.FILE)
@click.option("--namespace", default="default", show_default=True, help="Of samples that name none.")
@flags.value("--peak", "HH:MM-HH:MM[,...]", "The hours that count; by default they are found.")
@click.option("--days", default="mon-sun", show_default=True, help="The days that count, like mon-fri.")
@click.option("--timezone", default="UTC", show_default=True, help="Of the windows and of the times in file names.")
@click.option("--rule", default="peak-mean", show_default=True, help="peak-mean, seed-literal, quantile, target.")
@click.option(
    "--request-share",
    type=click.FloatRange(0.6, 0.9),
    default=0.75,
    show_default=True,
    help="What is requested of the limit, for workloads that are not core.",
)
@click.option(
    "--core",
    multiple=True,
    metavar="SELECTOR",
    help="Core workloads: [NAMESPACE/]NAME, namespace:NAME, label:KEY[=VALUE], annotation:KEY[=VALUE], "
    "priority-class:NAME; may be repeated.",
)
@click.option("--min-days", type=click.IntRange(min=1), default=14, show_default=True, help="Fewer give no number.")
@click.option("--min-samples", type=click.IntRange(min=1), default=100, show_default=True, help="Fewer give no number.")
@flags.duration("--warmup", "Counts for limits only.", "5m")
@flags.output_option("table", "json", "yaml", "csv")
@flags.value("--patches", "FOLDER", "Write a server-side-apply file for each workload; needs --snapshot.", flags.FILE)
@flags.value("--vpa", "FOLDER", "Write a VerticalPodAutoscaler that is off for each workload.", flags.FILE)
@click.option("--what-if", is_flag=True, help="Place all pods anew by today's requests and by these; needs --snapshot.")
@flags.scheduler_config_option
@flags.verbosity_option
@click.pass_context
@exit_on_error
def recommend(
    context: click.Context,
    /,
    output: str,
    verbosity: int,
    timezone: str,
    patches: str | None,
    vpa: str | None,
    request_share: float,
    min_days: int,
    min_samples: int,
    **given: Any,
) -> None:
    """Recommend requests and limits for each container, from what it used in the hours of the peaks.

    Nothing is written to a cluster. What could not be used is said on standard error. `recommend nodes` is about what
    kubelets should keep for the system; `recommend rules` has the manuals of the rules.
    """
    if context.invoked_subcommand:
        return
    from rebalancer.cli.terminal import progress_for  # noqa: PLC0415
    from rebalancer.recommendation.rules import Settings  # noqa: PLC0415  `--help` answers at once
    from rebalancer.recommendation.workloads import Enough  # noqa: PLC0415
    from rebalancer.report.recommendations import as_text  # noqa: PLC0415
    from rebalancer.run.recommend import RecommendOptions, recommendations  # noqa: PLC0415

    set_up(verbosity, as_json=False)
    prometheus = _history(given)
    for option, wanted in (("--patches", patches), ("--vpa", vpa), ("--what-if", given["what_if"])):
        if wanted and given["snapshot"] is None:
            raise UsageError(f"{option} needs --snapshot: `rebalancer snapshot` writes all that is needed")
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"--timezone {timezone} is not a time zone; write it like Asia/Shanghai") from None
    core = frozenset(given.pop("core"))
    settings, enough = Settings(request_share), Enough(min_days, min_samples)
    found, remarks = recommendations(
        RecommendOptions(timezone=zone, core=core, settings=settings, enough=enough, prometheus=prometheus, **given),
        progress_for(output, verbosity, log_as_json=False),
    )
    for remark in remarks:
        complain(f"Note: {remark}")
    _write(found.recommendations, patches, vpa)
    click.echo(as_text(found, output, shutil.get_terminal_size((160, 24)).columns), nl=False)


def _write(found: "Sequence[Recommendation]", patches: str | None, vpa: str | None) -> None:
    """Write the files that were asked for, and say how many."""
    from rebalancer.report.layout import count  # noqa: PLC0415  as above
    from rebalancer.report.recommendations import patches as to_patches  # noqa: PLC0415
    from rebalancer.report.recommendations import vertical_autoscalers  # noqa: PLC0415
    from rebalancer.run.recommend import write_files  # noqa: PLC0415

    for option, folder, files in (("--patches", patches, to_patches), ("--vpa", vpa, vertical_autoscalers)):
        if folder is not None:
            written = files(found)
            write_files(option, folder, written)
            complain(f"Note: {count(len(written), 'file')} written to {folder}{_HOW_TO_APPLY.get(option, '')}")


@recommend.command()
@flags.value("--snapshot", "FILE", "A file of `rebalancer snapshot`.", flags.FILE, required=True)
@flags.value("--prometheus", "URL", "What nodes used over days; one that asks for no credentials.")
@_policy_option
@_history_option
@_now_option
@flags.output_option("table", "json", "yaml")
@exit_on_error
def nodes(snapshot: str, output: str, **given: Any) -> None:
    """Recommend what kubelets keep for the system, so that they evict before the kernel kills.

    A snippet of a KubeletConfiguration for each size of nodes; nothing is written to a cluster.
    """
    from rebalancer.report.recommendations import reservations_as_text  # noqa: PLC0415  as above
    from rebalancer.run.recommend_nodes import recommended_reservations  # noqa: PLC0415

    asks = given["prometheus"] or given["policy"]
    rest = {"samples": None, "step": 300.0, "queries": None, "cpu_query": None, "memory_query": None}
    found, remarks = recommended_reservations(snapshot, _history({**given, **rest}) if asks else None)
    for remark in remarks:
        complain(f"Note: {remark}")
    click.echo(reservations_as_text(found, output, shutil.get_terminal_size((160, 24)).columns), nl=False)


@recommend.command()
@click.argument("name", required=False)
@exit_on_error
def rules(name: str | None) -> None:
    """List the rules, or print the manual of one of them."""
    from inspect import getdoc  # noqa: PLC0415  as above

    from rebalancer.recommendation.rules import rules as offered_rules  # noqa: PLC0415

    manuals = {rule: getdoc(each) or rule for rule, each in offered_rules().items()}
    if name is not None and name not in manuals:
        raise UsageError(f"{name} is not a rule; there are {', '.join(manuals)}")
    texts = [manuals[name]] if name else [each.partition("\n")[0] for each in manuals.values()]
    click.echo(printable_lines("\n".join(texts)))


def _history(given: dict[str, Any]) -> "PrometheusOptions | None":
    """Take out what is about Prometheus; None where samples are in a folder."""
    from rebalancer.run.recommend import PrometheusOptions, history_queries  # noqa: PLC0415  as above

    url, policy = given.pop("prometheus"), given.pop("policy")
    asked = (given.pop("queries"), given.pop("cpu_query"), given.pop("memory_query"))
    seconds, step, now = given.pop("history"), given.pop("step"), given.pop("now")
    if [given["samples"], url, policy].count(None) != 2:  # noqa: PLR2004  one of three is given
        raise UsageError("give one of --samples, --prometheus and --policy")
    if not 0 < step <= seconds or step % 1 or seconds % 1:
        raise UsageError("--step and --history are whole seconds; --step is more than 0, and no longer than --history")
    try:
        end = (datetime.fromisoformat(now) if now else datetime.now(UTC)).timestamp()
    except ValueError:
        raise UsageError(f"--now {now} is not a time; write it like 2026-01-15T12:00:00Z") from None
    if given["samples"]:
        return None
    return PrometheusOptions(url, policy, history_queries(*asked), int(seconds), int(step), end)
