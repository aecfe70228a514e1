"""What containers used over days, asked of Prometheus in pieces that it can bear.

1. The time is cut into pieces of half a day.  A piece that the server does not answer, for a limit of samples or for a
   time-out, is asked again as two halves.
2. A piece that cannot be cut any more is left out, with the reason; after some of these in a row nothing more is asked.
3. CPU and memory are joined by namespace, pod, container and time; where one of the two is missing there is no sample.

An example: 14 days are 28 pieces.  The server's limit of samples is passed by a third of them, so these are asked as 18
pieces of six hours.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rebalancer.errors import SourceError

CPU_QUERY = (
    'sum by (namespace, pod, container) (rate(container_cpu_usage_seconds_total{container!="",container!="POD"}[5m]))'
)
MEMORY_QUERY = 'sum by (namespace, pod, container) (container_memory_working_set_bytes{container!="",container!="POD"})'

_PIECE_SECONDS = 12 * 3600
_FEWEST_STEPS = 12
_MOST_IN_A_ROW = 4
#: More would not fit into the memory of a small pod.
MOST_SAMPLES = 8_000_000
_LABELS = ("namespace", "pod", "container")
_MILLI = 1000


class ContainerSample(NamedTuple):
    """What a container used, in millicores and bytes, at a time in seconds since 1970."""

    time: int
    namespace: str
    pod: str
    container: str
    cpu: int
    memory: int


class RangeSeries(NamedTuple):
    """A series of a range: its labels, and values with their times in seconds since 1970."""

    labels: Mapping[str, str]
    values: list[tuple[float, float]]


#: Asks a query from a time to another one, with so many seconds from sample to sample; raises SourceError.
AskRange = Callable[[str, float, float, float], list[RangeSeries]]


@dataclass(slots=True)
class ContainerHistory:
    """What was measured, in the order of time, and what is missing of it."""

    measured: list[ContainerSample] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is asked about: seconds since 1970, and seconds from sample to sample."""

    start: float
    end: float
    step: float


def read_history(
    ask: AskRange, queries: tuple[str, str], span: Span, tell: Callable[[float], None] = lambda _: None
) -> ContainerHistory:
    """Return what containers used.

    Args:
        ask: asks Prometheus.
        queries: for CPU in cores and for memory in bytes, each by namespace, pod and container.
        span: of the history.
        tell: called with the share that is done.

    Raises:
        SourceError: nothing can be had, or there are too many samples.
    """
    history, failed = ContainerHistory(), 0
    pieces = list(_pieces(span))
    while pieces:
        piece = pieces.pop()
        try:
            history.measured += _joined(*(ask(query, piece.start, piece.end, piece.step) for query in queries))
            failed = 0
        except SourceError as error:
            if piece.end - piece.start > _FEWEST_STEPS * piece.step:
                pieces += _halves(piece)
                continue
            failed += 1
            history.missing.append(f"{piece.end - piece.start:.0f} s from {piece.start:.0f} on are missing: {error}")
            if failed == _MOST_IN_A_ROW:
                raise
        if len(history.measured) > MOST_SAMPLES:
            raise SourceError(f"there are more than {MOST_SAMPLES:,} samples: ask with a longer --step")
        tell((piece.end - span.start) / (span.end - span.start))
    history.measured.sort(key=lambda each: each.time)
    return history


def _pieces(span: Span) -> Iterator[Span]:
    """Yield the pieces, the last one first; no sample is in two of them."""
    steps = max(1, int(_PIECE_SECONDS // span.step))
    count = int((span.end - span.start) // span.step) + 1
    for first in reversed(range(0, count, steps)):
        last = min(first + steps, count) - 1
        yield Span(span.start + first * span.step, span.start + last * span.step, span.step)


def _halves(piece: Span) -> list[Span]:
    steps = round((piece.end - piece.start) / piece.step)
    middle = piece.start + (steps // 2) * piece.step
    return [Span(middle + piece.step, piece.end, piece.step), Span(piece.start, middle, piece.step)]


def _joined(cpu: list[RangeSeries], memory: list[RangeSeries]) -> Iterator[ContainerSample]:
    bytes_of = {_name(each): dict(each.values) for each in memory}
    for each in cpu:
        at = bytes_of.get(name := _name(each), {})
        for time, cores in each.values:
            used = at.get(time)
            if used is not None and 0 <= cores < float("inf") and 0 <= used < float("inf"):
                yield ContainerSample(round(time), *name, round(cores * _MILLI), round(used))


def _name(series: RangeSeries) -> tuple[str, str, str]:
    """Return namespace, pod and container.

    Raises:
        SourceError: a label is missing.
    """
    absent = [label for label in _LABELS if not series.labels.get(label)]
    if absent:
        raise SourceError(f"a series has no label {', '.join(absent)}: sum by (namespace, pod, container)")
    namespace, pod, container = (series.labels[label] for label in _LABELS)
    return namespace, pod, container
