"""The commands that look and change nothing: `doctor`, `explain` and `report`."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rebalancer.cli import options as flags
from rebalancer.cli.plan import dry_options, dry_run, write_out
from rebalancer.errors import ClusterError, UsageError
from rebalancer.run.interruption import Interruption
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.run.doctor import Finding
    from rebalancer.run.options import ClientOptions

#: So many pods of an owner or of a node are explained on a terminal.
_MOST = 20


@click.command(short_help="Check what runs depend on, and say how to mend it.")
@flags.value(
    "--policy", "FILE|PRESET", "The policy that is to be run.", flags.POLICY, default="safe", show_default=True
)
@flags.cluster_options
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
    with Interruption() as interruption:
        if asked.snapshot is None:
            cluster = open_cluster(asked.kubeconfig, asked.context, asking=asked.client)
            findings += list(of_server(cluster, asked.lease, work))
        try:
            outcome = dry_run(asked, interruption)
            assert outcome.cluster is not None
            findings += list(of_snapshot(outcome.cluster.snapshot, work, outcome.report))
        except ClusterError as error:
            if asked.snapshot is not None:
                raise
            findings.append(Finding("objects", WRONG, str(error).splitlines()[0], "see permissions"))
    _print_checks(findings, output)
    sys.exit(int(any(each.state == WRONG for each in findings)))


def _print_checks(findings: Iterable["Finding"], output: str) -> None:
    documents = [each.document() for each in findings]
    if output == "json":
        click.echo(json.dumps({"apiVersion": "rebalancer/v1", "kind": "Checks", "checks": documents}, indent=2))
    for each in documents if output == "table" else ():
        cure = f"; {each['cure']}" if each["cure"] else ""
        click.echo(printable(f"{each['state']:8} {each['check']}: {each['says']}{cure}"))


@click.command(short_help="Say why a pod goes or stays, and where it could go.")
@click.argument("target", metavar="POD|deploy/NAME|node/NAME")
@flags.value("-n --namespace", "NAME", "Of the pod or owner.", flags.NAMESPACE, default="default", show_default=True)
@flags.policy_option
@flags.cluster_options
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

    with Interruption() as interruption:
        outcome = dry_run(dry_options(explains=True, **options), interruption)
    after, work = outcome.cluster, outcome.work
    assert after is not None
    assert work is not None
    before = Cluster(after.snapshot, work.policy.node_selector, lambda _, wanted: after.measure(wanted))
    node, pods = wanted_pods(target, namespace, before)
    documents = [explained(pod, before, work.plans, outcome.report, work.trust) for pod in pods]
    if output == "json":
        head = {"apiVersion": "rebalancer/v1", "kind": "Explanation", "node": node or None}
        click.echo(json.dumps({**head, "pods": documents}, indent=2))
    else:
        _print_explanations([explanation_lines(each, scores=scores) for each in documents])


def _print_explanations(pods: Sequence[Iterable[str]]) -> None:
    for lines in pods[:_MOST]:
        for line in lines:
            click.echo(printable(line))
    if len(pods) > _MOST:
        click.echo(f"and {len(pods) - _MOST} more pods; --output json has all")


@click.command(short_help="Make a page in HTML of a plan, a report, or the cluster.")
@click.argument("path", type=flags.FILE, metavar="[FILE|-]", required=False)
@flags.cluster_options
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


def _of_cluster(
    kubeconfig: str | None, context: str | None, client: "ClientOptions", snapshot: str | None
) -> dict[str, Any]:
    """Return the report of a cluster; a live one is read once, into a file that is not kept."""
    from rebalancer.run.capture import capture  # noqa: PLC0415  as above
    from rebalancer.run.cluster_report import cluster_report  # noqa: PLC0415

    if snapshot is not None:
        return cluster_report(snapshot, {"file": snapshot})
    with Interruption(), TemporaryDirectory() as folder:
        file = str(Path(folder, "cluster.json"))
        capture(kubeconfig, context, file, client)
        return cluster_report(file, {"context": context or "the current context"})


def _document(path: str) -> dict[str, Any]:
    """Return the plan or the report of a file."""
    from rebalancer.report.plan import read_plan  # noqa: PLC0415  as above
    from rebalancer.run.policies import settings_text  # noqa: PLC0415

    try:
        text = settings_text(path, "report")
        document = json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON: give a plan, or what `rebalancer run --output json` prints") from None
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "Plan":
        return read_plan(text, path).document()
    if kind != "Report":
        raise UsageError(f"{path} is neither a plan nor a report")
    return dict(document)
