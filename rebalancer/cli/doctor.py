"""The command `doctor`."""

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from rebalancer.cli.complaints import exit_on_error
from rebalancer.cli.completing import FILE, POLICY
from rebalancer.cli.logs import set_up
from rebalancer.cli.options import (
    client_options,
    context_option,
    kubeconfig_option,
    scheduler_config_option,
    verbosity_option,
    warn_of_insecurity,
)
from rebalancer.errors import ClusterError
from rebalancer.untrusted.printable import printable

if TYPE_CHECKING:
    from rebalancer.run.doctor import Finding


@click.command(short_help="Check what runs depend on, and say how to mend it.")
@click.option(
    "--policy",
    default="safe",
    show_default=True,
    type=POLICY,
    metavar="FILE|PRESET",
    help="The policy that is to be run.",
)
@kubeconfig_option
@context_option
@client_options
@click.option(
    "--snapshot", type=FILE, metavar="FILE", help="Check the cluster of a file: without what only a server can say."
)
@scheduler_config_option
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@verbosity_option
@exit_on_error
def doctor(output: str, verbosity: int, **options: Any) -> None:
    """Check what runs depend on: the API server, permissions, usage, PDBs, replicas, room, marks, other deschedulers.

    Each finding has its cure. Nothing is changed.

    Exit codes: 0 all is well; 1 something is wrong; 2 bad usage or policy; 3 no cluster.
    """
    set_up(verbosity, as_json=False)
    warn_of_insecurity(options["client"])
    from rebalancer.cli.progress import progress_for  # noqa: PLC0415  `--help` answers at once
    from rebalancer.cli.question import Question  # noqa: PLC0415
    from rebalancer.run.doctor import WRONG, Finding, of_server, of_snapshot  # noqa: PLC0415
    from rebalancer.run.interruption import Interruption  # noqa: PLC0415
    from rebalancer.run.live import open_cluster  # noqa: PLC0415
    from rebalancer.run.options import Options  # noqa: PLC0415
    from rebalancer.run.policies import parse_policy, policy_text  # noqa: PLC0415
    from rebalancer.run.start import run  # noqa: PLC0415
    from rebalancer.run.work import work_maker  # noqa: PLC0415

    text = policy_text(options["policy"])
    asked = Options(policy_text=text, dry_run=True, explains=True, **options)
    work = work_maker(asked)(parse_policy(text, asked.policy, strict=False))
    findings = []
    with Interruption() as interruption:
        if asked.snapshot is None:
            cluster = open_cluster(asked.kubeconfig, asked.context, asking=asked.client)
            findings += list(of_server(cluster, asked.lease, work))
        progress = progress_for("json", verbosity, log_as_json=False)
        try:
            outcome = run(asked, Question(yes=True), interruption, progress=progress)
            assert outcome.cluster is not None
            findings += list(of_snapshot(outcome.cluster.snapshot, work, outcome.report))
        except ClusterError as error:
            if asked.snapshot is not None:
                raise
            findings.append(Finding("objects", WRONG, str(error).splitlines()[0], "see permissions"))
    _print(findings, output)
    sys.exit(int(any(each.state == WRONG for each in findings)))


def _print(findings: Iterable["Finding"], output: str) -> None:
    documents = [each.document() for each in findings]
    if output == "json":
        click.echo(json.dumps({"apiVersion": "rebalancer/v1", "kind": "Checks", "checks": documents}, indent=2))
    for each in documents if output == "table" else ():
        cure = f"; {each['cure']}" if each["cure"] else ""
        click.echo(printable(f"{each['state']:8} {each['check']}: {each['says']}{cure}"))
