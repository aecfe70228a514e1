"""The command `report`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from rebalancer.cli.complaints import exit_on_error
from rebalancer.errors import UsageError


@click.command(short_help="Make a page in HTML of a plan or of a report in JSON.")
@click.argument("path", metavar="FILE|-")
@click.option("--out", default="-", metavar="FILE|-", help="Where to.")
@exit_on_error
def report(path: str, out: str) -> None:
    """Make one HTML file of a plan (`rebalancer plan`) or of a report (`rebalancer run --output json`).

    It needs no network: open it in a browser, print it, or send it to a colleague.
    """
    from rebalancer.report.page import html  # noqa: PLC0415  `--help` answers at once

    document = _document(path)
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
