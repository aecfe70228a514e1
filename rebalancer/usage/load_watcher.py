"""Usage from load-watcher: an average of some minutes for each node, in percent of its capacity.

1. Read `/watcher` once per cycle; refuse an answer whose window ended longer ago than `maxSampleAge` (default 5m).
2. Find each node by its name, InternalIP or Hostname; a port after the name is ignored.
3. Convert percent to an amount.  Example: 35 % CPU of a node with a capacity of 4 cores is 1400 millicores.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from rebalancer.cluster.cluster import Cluster
from rebalancer.cluster.measured import LoadFigure, Measured, NodeLoads
from rebalancer.cluster.node import Node
from rebalancer.cluster.resources import CPU, MEMORY, Resources
from rebalancer.errors import SourceError
from rebalancer.policy.usage import LoadWatcher
from rebalancer.untrusted.documents import Unreadable, decode_json
from rebalancer.usage.promql import without_port
from rebalancer.usage.sample_age import CLOCK_SKEW, in_words, instant, of_nodes, usable
from rebalancer.usage.session import Session, address_of, from_userinfo, plain

# The answer of load-watcher; keys that are not used are ignored.


class _Window(msgspec.Struct):
    end: float = 0


class _Host(msgspec.Struct):
    metrics: list[LoadFigure] | None = None


class _Hosts(msgspec.Struct):
    hosts: dict[str, _Host] | None = msgspec.field(default=None, name="NodeMetricsMap")


class LoadWatcherAnswer(msgspec.Struct):
    """The answer of `GET /watcher`."""

    window: _Window = msgspec.field(default_factory=_Window)
    data: _Hosts = msgspec.field(default_factory=_Hosts)

    @property
    def ended(self) -> datetime:
        """The end of the window that the figures cover; raises SourceError where there is no such time."""
        return instant(self.window.end)

    @property
    def percents(self) -> Mapping[str, Mapping[str, float]]:
        """By host and type of metric in lower case, percent of capacity: AVG, else Latest, else without operator."""
        return {host: _best(each.metrics or ()) for host, each in (self.data.hosts or {}).items()}

    @property
    def figures(self) -> Mapping[str, Sequence[LoadFigure]]:
        """By host, all figures in their order, as a scheduler gets them."""
        return {host: each.metrics or [] for host, each in (self.data.hosts or {}).items()}


#: Of two operators the higher number is used; others, such as spreads, are not averages and are left out.
_WORTH = {"avg": 2, "latest": 1, "": 0}


def _best(metrics: Iterable[LoadFigure]) -> dict[str, float]:
    usable = [each for each in metrics if each.operator.lower() in _WORTH]
    return {each.type.lower(): each.percent for each in sorted(usable, key=lambda each: _WORTH[each.operator.lower()])}


RESOURCES = (CPU, MEMORY)
DEFAULT_MAX_AGE = timedelta(minutes=5)


def ask(provider: LoadWatcher, is_ending: Callable[[], bool] = lambda: False) -> LoadWatcherAnswer:
    """Read load-watcher's figures; raises SourceError if it does not answer, or something else does."""
    address = address_of(provider.url)
    url = address.url
    auth, seconds = from_userinfo(address), provider.timeout.total_seconds()
    with Session(f"load-watcher at {url}", seconds, plain, auth=auth, is_ending=is_ending) as session:
        body = session.tries(lambda: session.get(f"{url}/watcher")).content
    try:
        return decode_json(body, LoadWatcherAnswer)
    except Unreadable as error:
        raise SourceError(f"what answers at {url}/watcher is not load-watcher: {error}") from error


def measured(answer: LoadWatcherAnswer, max_age: timedelta | None, cluster: Cluster) -> Measured:
    """Return the usage of nodes as amounts, so that it can be compared with what is allocatable.

    Its window may have ended `max_age` ago; five minutes where the policy does not say.  Raises SourceError if its
    figures are too old (without new data, load-watcher goes on serving the last figures), or they are from the future.
    """
    end = _checked_end(answer, DEFAULT_MAX_AGE if max_age is None else max_age, cluster.now)
    by_host = {without_port(host): percents for host, percents in answer.percents.items()}
    nodes, missing = of_nodes(cluster, lambda node: _usage(by_host, node))
    return Measured(nodes, nodes, missing=missing, taken=end)


def loads(answer: LoadWatcherAnswer, now: datetime) -> NodeLoads:
    """Return load-watcher's figures as a scheduler gets them; raises SourceError if too old, or from the future."""
    return NodeLoads(answer.figures, _checked_end(answer, DEFAULT_MAX_AGE, now))


def _checked_end(answer: LoadWatcherAnswer, longest: timedelta, now: datetime) -> datetime:
    """Return the end of the window; raises SourceError if it ended too long ago, or ends in the future."""
    end = answer.ended
    if now - end > longest:
        age = in_words(now - end)
        raise SourceError(f"the window of load-watcher ended {age} ago, more than {in_words(longest)}: it gets no data")
    if end - now > CLOCK_SKEW:
        raise SourceError(f"the window of load-watcher ends in the future, {in_words(end - now)} ahead")
    return end


def _usage(by_host: Mapping[str, Mapping[str, float]], node: Node) -> Resources | str:
    names = (node.name, node.addresses.get("InternalIP", ""), node.addresses.get("Hostname", ""))
    percents = next((by_host[name] for name in names if name and name in by_host), {})
    if not percents:
        return "load-watcher does not know it"
    for name in RESOURCES:
        if name not in percents:
            return f"no sample of {name}"
        if not usable(percents[name]):
            return f"{name} is {percents[name]:g}"
        if name not in node.capacity:
            return f"{name}: the node's capacity is unknown"
    return {name: round(percents[name] / 100 * node.capacity[name]) for name in RESOURCES}
