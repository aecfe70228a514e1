"""The commands that look and change nothing: `doctor`, `explain`, `report` and `recommend`."""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from rebalancer.cli import options as flags
from rebalancer.cli.logs import complain, exit_on_error
from rebalancer.cli.plan import dry_options, dry_run, write_out
from rebalancer.cli.standing import release_options
from rebalancer.errors import ClusterError, UsageError
from rebalancer.report.layout import count
from rebalancer.run.interruption import Interruption
from rebalancer.run.options import ClientOptions, HistoryOptions, LeaseOptions
from rebalancer.untrusted.printable import printable, printable_lines

if TYPE_CHECKING:
    from rebalancer.recommendation.workloads import Recommendation

_MOST = 20  # so many pods of an owner or of a node are explained on a terminal


@click.command(short_help="Check what runs depend on, and say how to mend it.")
@flags.value("--policy", "FILE|PRESET", "The policy that is to be run.", flags.POLICY, **flags.shown("safe"))
@release_options
@flags.value("--snapshot", "FILE", "Check the cluster of a file: without what only a server can say.", flags.FILE)
@flags.scheduler_config_option
@flags.output_option("table", "json")
@flags.logged
def doctor(output: str, **options: Any) -> None:
    """Check what runs depend on: the API server, permissions, usage, PDBs, replicas, room, marks, other deschedulers.

    Each finding has its cure. Nothing is changed.

    Exit codes: 0 all is well; 1 something is wrong; 2 bad usage or policy; 3 no cluster.
    """
    from rebalancer.run.doctor import WRONG, Finding, of_server, of_snapshot  # noqa: PLC0415  `--help` answers at once
    from rebalancer.run.live import open_cluster  # noqa: PLC0415
    from rebalancer.run.policies import read_policy  # noqa: PLC0415
    from rebalancer.run.work import work_maker  # noqa: PLC0415

    asked = dry_options(explains=True, **options)
    work = work_maker(asked)(read_policy(asked.policy, asked.policy_text, strict=False))
    findings = []
    with Interruption():
        if asked.snapshot is None:
            findings += list(of_server(open_cluster(asked.client), asked.lease, work))
    try:
        outcome, cluster, _ = dry_run(asked)
        findings += list(of_snapshot(cluster.snapshot, work, outcome.report))
    except ClusterError as error:
        if asked.snapshot is not None:
            raise
        findings.append(Finding("objects", WRONG, str(error).splitlines()[0], "see permissions"))
    if output == "json":
        checks = [asdict(each) for each in findings]
        click.echo(json.dumps({"apiVersion": "rebalancer/v1", "kind": "Checks", "checks": checks}, indent=2))
    for found in findings if output == "table" else ():
        cure = f"; {found.cure}" if found.cure else ""
        click.echo(printable(f"{found.state:8} {found.check}: {found.says}{cure}"))
    sys.exit(int(any(each.state == WRONG for each in findings)))


@click.command(short_help="Say why a pod goes or stays, and where it could go.")
@click.argument("target", metavar="NAMESPACE/POD|deploy/NAME|node/NAME")
@flags.value("-n --namespace", "NAME", "Of the pod or owner.", default="default", show_default=True)
@flags.policy_option
@release_options
@flags.file_option
@flags.now_option
@flags.scheduler_config_option
@flags.steer_option
@click.option("--scores", is_flag=True, help="Also what each node scores, plugin by plugin.")
@flags.output_option("table", "json")
@flags.logged
def explain(target: str, namespace: str, output: str, *, scores: bool, **options: Any) -> None:
    """Say what each strategy of a policy thinks of a pod, all that holds it, and where its replacement could go.

    The verdict is that of a dry run of the policy. Nothing is changed.
    """
    from rebalancer.cluster.cluster import Cluster  # noqa: PLC0415  as above
    from rebalancer.run.explain import explained, explanation_lines, wanted_pods  # noqa: PLC0415

    outcome, after, work = dry_run(dry_options(explains=True, **options))
    before = Cluster(after.snapshot, work.policy.node_selector, lambda _, wanted: after.measure(wanted))
    node, pods = wanted_pods(target, namespace, before)
    shown = pods if output == "json" else pods[:_MOST]
    documents = [explained(pod, before, work.plans, outcome.report, work.trust) for pod in shown]
    if output == "json":
        head = {"apiVersion": "rebalancer/v1", "kind": "Explanation", "node": node or None}
        click.echo(json.dumps({**head, "pods": documents}, indent=2))
    else:
        for each in documents:
            click.echo("\n".join(map(printable, explanation_lines(each, scores=scores))))
        if len(pods) > _MOST:
            click.echo(f"and {len(pods) - _MOST} more pods; --output json has all")


@click.command(short_help="Make a page in HTML of a plan, a report, or the cluster.")
@click.argument("path", type=flags.FILE, metavar="[FILE|-]", required=False)
@release_options
@flags.value("--snapshot", "FILE", "Show the cluster of a file, and not the live one.", flags.FILE)
@flags.value("--out", "FILE|-", "Where to.", flags.FILE, default="-")
@flags.logged
def report(path: str | None, out: str, **cluster: Any) -> None:
    """Make one HTML file of a plan (`rebalancer plan`) or of a report (`rebalancer run --output json`).

    Without a file, show the cluster as it is: what nodes use beside what is requested, who makes the peaks, how much
    room is left, and what each preset would do. Nothing is changed.

    The page needs no network: open it in a browser, print it, or send it to a colleague.
    """
    from rebalancer.report.page import html  # noqa: PLC0415  as above

    document = _document(path) if path else _of_cluster(**cluster)
    try:
        page = html(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path} is not a whole report: {type(error).__name__}: {error}") from None
    write_out(page, out)


def _of_cluster(client: ClientOptions, lease: LeaseOptions, snapshot: str | None) -> dict[str, Any]:
    from rebalancer.run.capture import capture  # noqa: PLC0415  as above
    from rebalancer.run.progress import Progress  # noqa: PLC0415
    from rebalancer.run.start import cluster_report  # noqa: PLC0415

    if snapshot is not None:
        return cluster_report(snapshot, {"file": snapshot})
    with Interruption(), TemporaryDirectory() as folder:
        file = str(Path(folder, "cluster.json"))
        _, warnings = capture(client, file, Progress(), lease)
        complain(*(f"Warning: {warning}" for warning in warnings))
        return cluster_report(file, {"context": client.context or "the current context"})


def _document(path: str) -> dict[str, Any]:
    from rebalancer.report.plan import read_plan  # noqa: PLC0415  as above
    from rebalancer.run.policies import settings_text  # noqa: PLC0415

    text = settings_text(path, "report", f"there is no file {path}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        if not text.lstrip().startswith("{"):
            return read_plan(text, path).document()  # in YAML
        raise UsageError(f"{path} is not JSON: give a plan, or what `rebalancer run --output json` prints") from None
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "Plan":
        return read_plan(text, path).document()
    if kind != "Report":
        raise UsageError(f"{path} is neither a plan nor a report")
    return dict(document)


_HOW_TO_APPLY = (
    "; read them, then `kubectl apply --server-side --field-manager=rebalancer-recommend -f` the folder. "
    "A conflict names who has set these amounts: take them out of there, and apply with --force-conflicts"
)
_where_options = (
    flags.value("--policy", "FILE|PRESET", "Or the Prometheus of a policy.", flags.POLICY),
    flags.duration("--history", "Of Prometheus: so long, until now.", "336h"),
)
_SHARE = "What is requested of the limit, for workloads that are not core."
_CORE = (
    "Core workloads: [NAMESPACE/]NAME, namespace:NAME, label:KEY[=VALUE], annotation:KEY[=VALUE], priority-class:NAME; "
    "may be repeated."
)
_now_option = flags.value("--now", "TIME", "The end of the history, RFC 3339; by default now.")


@click.group(
    invoke_without_command=True,
    subcommand_metavar="[nodes|rules]",
    short_help="Recommend requests and limits from what containers used.",
)
@flags.value("--samples", "FOLDER", "What `kubectl top pods` printed, one file a time.", flags.FILE)
@flags.packed(
    "history",
    HistoryOptions,
    flags.value("--prometheus", "URL", "Or a Prometheus that asks for no credentials.", flags.URL),
    *_where_options,
    flags.duration("--step", "Of Prometheus: from sample to sample.", "5m"),
    flags.value("--queries", "FILE", "How Prometheus is asked for cpu and memory, as YAML.", flags.FILE),
    flags.value("--cpu-query", "PROMQL", "Cores by namespace, pod and container; default: by cAdvisor."),
    flags.value("--memory-query", "PROMQL", "Bytes, by the same labels."),
    _now_option,
)
@flags.value("--snapshot", "FILE", "Pods as JSON: what they request now, and who owns them.", flags.FILE)
@click.option("--namespace", default="default", show_default=True, help="Of samples that name none.")
@flags.value("--peak", "HH:MM-HH:MM[,...]", "The hours that count; by default they are found.")
@click.option("--days", default="mon-sun", show_default=True, help="The days that count, like mon-fri.")
@click.option("--timezone", default="UTC", show_default=True, help="Of the windows and of the times in file names.")
@click.option("--rule", default="peak-mean", show_default=True, help="peak-mean, seed-literal, quantile, target.")
@flags.value("--request-share", None, _SHARE, click.FloatRange(0.6, 0.9), **flags.shown(0.75))
@flags.value("--core", "SELECTOR", _CORE, multiple=True)
@click.option("--min-days", type=click.IntRange(min=1), default=14, show_default=True, help="Fewer give no number.")
@click.option("--min-samples", type=click.IntRange(min=1), default=100, show_default=True, help="Fewer give no number.")
@flags.duration("--warmup", "Counts for limits only.", "5m")
@flags.output_option("table", "json", "yaml", "csv")
@flags.value("--patches", "FOLDER", "Write a server-side-apply file for each workload; needs --snapshot.", flags.FILE)
@flags.value("--vpa", "FOLDER", "Write a VerticalPodAutoscaler that is off for each workload.", flags.FILE)
@click.option("--what-if", is_flag=True, help="Place all pods anew by today's requests and by these; needs --snapshot.")
@flags.scheduler_config_option
@flags.logged
@click.pass_context
def recommend(
    context: click.Context, /, output: str, timezone: str, patches: str | None, vpa: str | None, **given: Any
) -> None:
    """Recommend requests and limits for each container, from what it used in the hours of the peaks.

    Nothing is written to a cluster. What could not be used is said on standard error. `recommend nodes` is about what
    kubelets should keep for the system; `recommend rules` has the manuals of the rules.
    """
    if context.invoked_subcommand:
        return
    from rebalancer.cli.terminal import progress_for  # noqa: PLC0415
    from rebalancer.report.recommendations import as_text  # noqa: PLC0415  `--help` answers at once
    from rebalancer.run.recommend import RecommendOptions, recommendations  # noqa: PLC0415

    for option, wanted in (("--patches", patches), ("--vpa", vpa), ("--what-if", given["what_if"])):
        if wanted and given["snapshot"] is None:
            raise UsageError(f"{option} needs --snapshot: `rebalancer snapshot` writes all that is needed")
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"--timezone {timezone} is not a time zone; write it like Asia/Shanghai") from None
    asked = RecommendOptions(timezone=zone, **given)
    found, remarks = recommendations(asked, progress_for(output, flags.verbosity(), log_as_json=False))
    complain(*(f"Note: {remark}" for remark in remarks))
    _write(found.recommendations, patches, vpa)
    click.echo(as_text(found, output, shutil.get_terminal_size((160, 24)).columns), nl=False)


def _write(found: Sequence["Recommendation"], patches: str | None, vpa: str | None) -> None:
    from rebalancer.report.recommendations import patches as to_patches  # noqa: PLC0415  as above
    from rebalancer.report.recommendations import vertical_autoscalers  # noqa: PLC0415

    for option, folder, files in (("--patches", patches, to_patches), ("--vpa", vpa, vertical_autoscalers)):
        if folder is None:
            continue
        written = files(found)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            if any(Path(folder).iterdir()):  # `kubectl apply -f` would apply what is there as well
                raise UsageError(f"{option} {folder} is not empty; name a new folder")
            for name, text in written.items():
                Path(folder, name).write_text(text)
        except OSError as error:
            raise UsageError(f"{option} {folder} cannot be written: {error.strerror}") from None
        how = _HOW_TO_APPLY if option == "--patches" else ""
        complain(f"Note: {count(len(written), 'file')} written to {folder}{how}")


@recommend.command()
@flags.value("--snapshot", "FILE", "A file of `rebalancer snapshot`.", flags.FILE, required=True)
@flags.packed(
    "history",
    HistoryOptions,
    flags.value("--prometheus", "URL", "What nodes used over days; one that asks for no credentials.", flags.URL),
    *_where_options,
    _now_option,
)
@flags.output_option("table", "json", "yaml")
@exit_on_error
def nodes(snapshot: str, output: str, history: HistoryOptions) -> None:
    """Recommend what kubelets keep for the system, so that they evict before the kernel kills.

    A snippet of a KubeletConfiguration for each size of nodes; nothing is written to a cluster.
    """
    from rebalancer.report.recommendations import reservations_as_text  # noqa: PLC0415  as above
    from rebalancer.run.recommend import recommended_reservations  # noqa: PLC0415

    found, remarks = recommended_reservations(snapshot, history)
    complain(*(f"Note: {remark}" for remark in remarks))
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
