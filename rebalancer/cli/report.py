"""The command `report`."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from rebalancer.cli.complaints import exit_on_error
from rebalancer.cli.completing import FILE
from rebalancer.cli.logs import set_up
from rebalancer.cli.options import (
    client_options,
    context_option,
    kubeconfig_option,
    verbosity_option,
    warn_of_insecurity,
)
from rebalancer.errors import UsageError

if TYPE_CHECKING:
    from rebalancer.run.options import ClientOptions


@click.command(short_help="Make a page in HTML of a plan, a report, or the cluster.")
@click.argument("path", type=FILE, metavar="[FILE|-]", required=False)
@kubeconfig_option
@context_option
@client_options
@click.option("--snapshot", type=FILE, metavar="FILE", help="Show the cluster of a file, and not the live one.")
@click.option("--out", default="-", type=FILE, metavar="FILE|-", help="Where to.")
@verbosity_option
@exit_on_error
def report(path: str | None, out: str, verbosity: int, **cluster: Any) -> None:
    """Make one HTML file of a plan (`rebalancer plan`) or of a report (`rebalancer run --output json`).

    Without a file, show the cluster as it is: what nodes use beside what is requested, who makes the peaks, how much
    room is left, and what each preset would do. Nothing is changed.

    The page needs no network: open it in a browser, print it, or send it to a colleague.
    """
    set_up(verbosity, as_json=False)
    warn_of_insecurity(cluster["client"])
    from rebalancer.report.page import html  # noqa: PLC0415  `--help` answers at once

    document = _document(path) if path else _of_cluster(verbosity, **cluster)
    try:
        page = html(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path} is not a whole report: {type(error).__name__}: {error}") from None
    if out == "-":
        sys.stdout.write(page)
        return
    try:
        Path(out).write_text(page)
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error.strerror}") from None


def _of_cluster(
    verbosity: int, kubeconfig: str | None, context: str | None, client: "ClientOptions", snapshot: str | None
) -> dict[str, Any]:
    """Return the report of a cluster; a live one is read once, into a file that is not kept."""
    from rebalancer.cli.progress import progress_for  # noqa: PLC0415  as above
    from rebalancer.run.capture import capture  # noqa: PLC0415
    from rebalancer.run.interruption import Interruption  # noqa: PLC0415
    from rebalancer.run.start import cluster_report  # noqa: PLC0415

    if snapshot is not None:
        return cluster_report(snapshot, {"file": snapshot})
    with Interruption(), TemporaryDirectory() as folder:
        file = str(Path(folder, "cluster.json"))
        capture(kubeconfig, context, file, client, progress_for("json", verbosity, log_as_json=False))
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
