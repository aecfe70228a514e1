"""When the samples that a cycle decides on were taken."""

from collections.abc import Callable
from datetime import UTC, datetime

#: Called with a source, and the time of the oldest sample that it gave in this cycle.
Sampled = Callable[[str, datetime], None]
_NEVER = datetime.max.replace(tzinfo=UTC)


def ignored(_source: str, _taken: datetime) -> None:
    """Do nothing: for a caller that needs no report."""


class OldestSamples:
    """The oldest sample of each source in one cycle, in whichever order strategies ask.

    Args:
        sampled: called whenever an older sample of a source is found.
    """

    def __init__(self, sampled: Sampled) -> None:
        self._sampled = sampled
        self._oldest: dict[str, datetime] = {}

    def note(self, source: str, taken: datetime | None) -> None:
        """Record when the oldest sample of an answer was taken; None where the source does not say."""
        if taken is not None and taken < self._oldest.get(source, _NEVER):
            self._oldest[source] = taken
            self._sampled(source, taken)
