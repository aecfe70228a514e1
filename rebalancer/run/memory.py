"""The memory of a live cluster: read before a cycle, and written after it; a dry run only reads.

What was moved and measured is written after the cycle, and once a minute in a long one (`Diary`), over the version that
was read; where others wrote meanwhile, what they wrote is taken up first.
"""

import time
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from rebalancer.clock import Clock
from rebalancer.cluster.cluster import Cluster
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.patience import Recollection
from rebalancer.errors import ClusterError, Forbidden
from rebalancer.eviction.verdict import Granted, Unknown
from rebalancer.kube.memory_map import NAME, MemoryMap
from rebalancer.memory.document import KEY, Memory, PastMove, Reading, encoded
from rebalancer.memory.settling import settled, with_moves
from rebalancer.run.live import LiveCluster
from rebalancer.run.options import LeaseOptions
from rebalancer.run.recollection import Recalled, past_move, recalled

#: How often a write is tried while others write too.
_TRIES = 5
#: A cycle that lasts writes so often.
_EVERY_SECONDS = 60.0
_MOST_READINGS = 12


def memory_map(cluster: LiveCluster, lease: LeaseOptions) -> MemoryMap:
    """Return the ConfigMap of a release, which is named after its Lease."""
    usual = lease.resource_name == LeaseOptions().resource_name
    name = NAME if usual else f"{lease.resource_name}-memory"
    return MemoryMap(cluster.client, lease.resource_namespace, name)


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory as a cycle found it: where it is, what was read, and what follows."""

    source: MemoryMap
    found: Recalled
    recollection: Recollection


def read_memory(source: MemoryMap, now: datetime) -> Recalled:
    """Return the memory of the cluster; one that cannot be read is a problem, not an error."""
    name = f"{source.namespace}/{source.name}"
    try:
        return recalled(source.read().data, name, now)
    except Forbidden as error:
        return Recalled(None, f"the memory {name} may not be read: {error}", is_ours=False)
    except ClusterError as error:
        return Recalled(None, f"the memory {name} cannot be read: {error}")


class Diary:
    """Writes down what a live cycle does.

    Args:
        view: the ConfigMap, what was read of it as the cycle began, and what the cycle knows by it.
        cluster: the cluster as the cycle began.
        now: the wall clock, aware.
        clock: measures how long it is since the last write.
    """

    def __init__(
        self,
        view: MemoryView,
        cluster: Cluster,
        now: Clock = time.time,
        clock: Clock = time.monotonic,
    ) -> None:
        self.problem = ""
        self._source = view.source
        self._is_ours = view.found.is_ours
        self.recollection = view.recollection
        self._cycle = cluster.now
        self._pods = cluster.snapshot.pods
        self._moves: list[PastMove] = []
        self._written = 0
        self._readings: tuple[Reading, ...] = ()
        self._now = now
        self._clock = clock
        self._last = clock()

    def observe(self, entry: Entry) -> None:
        """Take note of an eviction, also of one that is in doubt."""
        if not isinstance(entry.verdict, Granted | Unknown):
            return
        at = max(self._cycle, datetime.fromtimestamp(self._now(), self._cycle.tzinfo))
        self._moves.append(past_move(entry, at, self._cycle))
        if self._clock() - self._last >= _EVERY_SECONDS:
            self.write()

    def close(self, ledger: Ledger) -> None:
        """Write it at the end, with what the first strategy that measured nodes found."""
        measured = next((run.observed.nodes for run in ledger.runs if run.observed.nodes), ())
        nodes = {each.name: {name: round(of, 1) for name, of in each.before.items()} for each in measured}
        self._readings = (Reading(self._cycle, nodes),) if nodes else ()
        self.write()

    def write(self) -> None:
        """Write it; a problem is noted, and ends no cycle."""
        self._last = self._clock()
        if not self._is_ours:
            return
        try:
            for _ in range(_TRIES):
                before = self._source.read()
                now = datetime.fromtimestamp(self._now(), self._cycle.tzinfo)
                known = recalled(before.data, self._source.name, max(now, self._cycle))
                if not known.is_ours:
                    return
                if self._source.write(before, {KEY: encoded(self._grown(known.memory))}):
                    self.problem = ""
                    return
            self.problem = f"the memory {self._source.name} was not written: others write to it all the time"
        except ClusterError as error:
            self.problem = f"what was moved is not remembered: {error}"

    def _grown(self, known: Memory | None) -> Memory:
        """Return the memory with what this cycle has added; where it was lost meanwhile, what the cycle knew of it."""
        recollection = self.recollection
        settings = recollection.settings
        memory = known or replace(recollection.memory, since=self._cycle, readings=())
        memory = settled(memory, self._pods, self._cycle, settings.ready_within)
        memory = replace(memory, breaker=recollection.memory.breaker)
        there = {(each.at, each.pod) for each in memory.moves}
        memory = with_moves(memory, [each for each in self._moves if (each.at, each.pod) not in there])
        old = [each for each in memory.readings if each.at != self._cycle]
        return replace(memory, readings=(*old, *self._readings)[-_MOST_READINGS:])
