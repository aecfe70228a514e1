"""The command `explain`."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import click

from rebalancer.cli.complaints import exit_on_error
from rebalancer.cli.completing import FILE, NAMESPACE
from rebalancer.cli.logs import set_up
from rebalancer.cli.options import (
    client_options,
    context_option,
    kubeconfig_option,
    policy_option,
    scheduler_config_option,
    verbosity_option,
    warn_of_insecurity,
)
from rebalancer.untrusted.printable import printable

#: So many pods of an owner or of a node are explained on a terminal.
_MOST = 20


@click.command(short_help="Say why a pod goes or stays, and where it could go.")
@click.argument("target", metavar="POD|deploy/NAME|node/NAME")
@click.option(
    "-n",
    "--namespace",
    type=NAMESPACE,
    default="default",
    show_default=True,
    metavar="NAME",
    help="Of the pod or owner.",
)
@policy_option
@kubeconfig_option
@context_option
@client_options
@click.option("--snapshot", type=FILE, metavar="FILE|-", help="Work on a cluster file instead of a cluster.")
@click.option("--now", metavar="TIME", help="The clock, RFC 3339; goes with --snapshot.")
@scheduler_config_option
@click.option("--steer", is_flag=True, help="As for `run`.")
@click.option("--scores", is_flag=True, help="Also what each node scores, plugin by plugin.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@verbosity_option
@exit_on_error
def explain(target: str, namespace: str, output: str, verbosity: int, *, scores: bool, **options: Any) -> None:
    """Say what each strategy of a policy thinks of a pod, all that holds it, and where its replacement could go.

    The verdict is that of a dry run of the policy. Nothing is changed.
    """
    set_up(verbosity, as_json=False)
    warn_of_insecurity(options["client"])
    from rebalancer.cli.progress import progress_for  # noqa: PLC0415  `--help` answers at once
    from rebalancer.cli.question import Question  # noqa: PLC0415
    from rebalancer.cluster.cluster import Cluster  # noqa: PLC0415
    from rebalancer.run.explain import explained, explanation_lines, wanted_pods  # noqa: PLC0415
    from rebalancer.run.interruption import Interruption  # noqa: PLC0415
    from rebalancer.run.options import Options  # noqa: PLC0415
    from rebalancer.run.policies import parse_policy, policy_text  # noqa: PLC0415
    from rebalancer.run.start import run  # noqa: PLC0415
    from rebalancer.run.work import work_maker  # noqa: PLC0415

    text = policy_text(options["policy"])
    asked = Options(policy_text=text, dry_run=True, explains=True, **options)
    with Interruption() as interruption:
        progress = progress_for("json", verbosity, log_as_json=False)
        outcome = run(asked, Question(yes=True), interruption, progress=progress)
    assert outcome.cluster is not None
    work = work_maker(asked)(parse_policy(text, asked.policy, strict=False))
    after = outcome.cluster
    before = Cluster(after.snapshot, work.policy.node_selector, lambda _, wanted: after.measure(wanted))
    node, pods = wanted_pods(target, namespace, before)
    documents = [explained(pod, before, work.plans, outcome.report, work.trust) for pod in pods]
    if output == "json":
        head = {"apiVersion": "rebalancer/v1", "kind": "Explanation", "node": node or None}
        click.echo(json.dumps({**head, "pods": documents}, indent=2))
    else:
        _print([explanation_lines(each, scores=scores) for each in documents])


def _print(pods: Sequence[Iterable[str]]) -> None:
    for lines in pods[:_MOST]:
        for line in lines:
            click.echo(printable(line))
    if len(pods) > _MOST:
        click.echo(f"and {len(pods) - _MOST} more pods; --output json has all")
