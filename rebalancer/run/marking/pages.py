"""What is served about marks, beside health and metrics: `/status` and `/nodes`.

Written by the evaluations' thread and read by the server's; the outcome is replaced as a whole, so no lock is needed.
"""

import json
from collections.abc import Mapping
from typing import Any

from rebalancer.marking.outcome import MarkingOutcome
from rebalancer.report.marking_pages import nodes_document, nodes_html, status_document, status_html
from rebalancer.run.health import Health
from rebalancer.telemetry.checks import PageOf, ServedPage

_JSON = "application/json"


class Board:
    """The last evaluation, shown to whoever asks.

    Args:
        health: of this process.
    """

    def __init__(self, health: Health) -> None:
        self._health = health
        self._last: MarkingOutcome | None = None
        self._evaluated: MarkingOutcome | None = None

    def show(self, outcome: MarkingOutcome) -> None:
        """Show this evaluation from now on; nodes stay as they were last evaluated where it was skipped."""
        self._last = outcome
        self._evaluated = self._evaluated if outcome.skipped else outcome

    def pages(self) -> Mapping[str, PageOf]:
        """Return the pages by path."""
        return {"/status": lambda _: self._status(), "/nodes": lambda _: self._nodes()}

    def _status(self) -> ServedPage:
        document = status_document(self._last, self._health.alive(), self._health.ready())
        return _page(document, status_html(document))

    def _nodes(self) -> ServedPage:
        document = nodes_document(self._evaluated)
        return _page(document, nodes_html(document))


def _page(document: Mapping[str, Any], html: str) -> ServedPage:
    return ServedPage(200, (json.dumps(document, indent=2) + "\n").encode(), _JSON, html.encode())
