"""The answer of load-watcher; keys that are not used are ignored."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rebalancer.cluster.loads import LoadFigure


class _Window(msgspec.Struct):
    end: float = 0


class _Metric(msgspec.Struct):
    type: str = ""
    operator: str = ""
    value: float = 0


class _Host(msgspec.Struct):
    metrics: list[_Metric] | None = None


class _Hosts(msgspec.Struct):
    hosts: dict[str, _Host] | None = msgspec.field(default=None, name="NodeMetricsMap")


class LoadWatcherAnswer(msgspec.Struct):
    """The answer of `GET /watcher`."""

    window: _Window = msgspec.field(default_factory=_Window)
    data: _Hosts = msgspec.field(default_factory=_Hosts)

    @property
    def percents(self) -> Mapping[str, Mapping[str, float]]:
        """By host and type of metric in lower case, percent of capacity: AVG, else Latest, else without operator."""
        return {host: _best(each.metrics or ()) for host, each in (self.data.hosts or {}).items()}

    @property
    def figures(self) -> Mapping[str, Sequence[LoadFigure]]:
        """By host, all figures in their order, as a scheduler gets them."""
        return {
            host: [LoadFigure(metric.type, metric.operator, metric.value) for metric in each.metrics or ()]
            for host, each in (self.data.hosts or {}).items()
        }


#: Of two operators the higher number is used; others, such as spreads, are not averages and are left out.
_WORTH = {"avg": 2, "latest": 1, "": 0}


def _best(metrics: Iterable[_Metric]) -> dict[str, float]:
    usable = [each for each in metrics if each.operator.lower() in _WORTH]
    return {each.type.lower(): each.value for each in sorted(usable, key=lambda each: _WORTH[each.operator.lower()])}
