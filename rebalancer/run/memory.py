"""The memory of a live cluster: read before a cycle, and written after it; a dry run only reads.

What was moved and measured is written after the cycle, and once a minute in a long one (`Diary`), over the version that
was read; where others wrote meanwhile, what they wrote is taken up first.
"""

import dataclasses
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import RLock

import msgspec
from msgspec.structs import replace

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.patience import Recollection
from rebalancer.errors import ClusterError, Forbidden
from rebalancer.eviction.verdict import Granted, Unknown
from rebalancer.kube.leases import Leases
from rebalancer.kube.memory_map import MemoryMap
from rebalancer.memory.document import KEY, Memory, OwnerStop, PastMove, Reading, encoded
from rebalancer.memory.settling import judged, settled, with_moves
from rebalancer.run.leadership import REQUEST_SECONDS
from rebalancer.run.live import LiveCluster
from rebalancer.run.options import LeaseOptions
from rebalancer.run.recollection import BREAKER_NOTE, Recalled, past_move, paused, readings, recalled, tripped

#: How often a write is tried while others write too.
_TRIES = 5
#: A cycle that lasts writes so often.
_EVERY_SECONDS = 60.0
_MOST_READINGS = 12


def memory_map(cluster: LiveCluster, lease: LeaseOptions) -> MemoryMap:
    """Return the ConfigMap of a release, which is beside its Lease."""
    return MemoryMap(cluster.client, lease.resource_namespace, lease.memory)


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The memory as a cycle found it: where it is, what was read, and what follows."""

    source: MemoryMap
    leases: Leases
    found: Recalled
    recollection: Recollection


def leases_of(cluster: LiveCluster, lease: LeaseOptions) -> Leases:
    """Return the Lease whose annotations have what must not be lost with the memory."""
    return Leases(cluster.client, lease.resource_namespace, lease.resource_name, REQUEST_SECONDS)


def notes_of(leases: Leases) -> Mapping[str, str]:
    """Return the annotations of the Lease; none where it may not be read."""
    try:
        found = leases.read()
    except ClusterError:
        return {}
    return found.annotations if found else {}


def read_memory(source: MemoryMap, leases: Leases, now: datetime) -> Recalled:
    """Return the memory of the cluster; one that cannot be read is a problem, not an error."""
    notes = notes_of(leases)
    name = f"{source.namespace}/{source.name}"
    try:
        return recalled(source.read().data, name, now, notes)
    except Forbidden as error:
        unread = Recalled(None, f"the memory {name} may not be read: {error}", is_ours=False)
    except ClusterError as error:
        unread = Recalled(None, f"the memory {name} cannot be read: {error}")
    return dataclasses.replace(unread, paused=paused({}, notes, now), tripped=tripped(notes.get(BREAKER_NOTE, ""), now))


class Diary:
    """Writes down what a live cycle does.

    Args:
        view: the ConfigMap, what was read of it as the cycle began, and what the cycle knows by it.
        snapshot: the cluster as the cycle began.

    Attributes:
        problem: why what was moved could not be written down; empty if it was.
        stopped: why the run stops: the breaker has opened; empty if it goes on.
        moves: of this cycle, with what became of them.
        gone: the pods that they moved.
        recollection: what is known of earlier cycles, and of this one as far as the breaker goes.
    """

    def __init__(self, view: MemoryView, snapshot: Snapshot) -> None:
        self.problem = ""
        self.stopped = ""
        self._writing = RLock()  # a thread that looks at replacements, and what is observed meanwhile
        self.moves: tuple[PastMove, ...] = ()
        self.gone: list[Pod] = []
        self.view = view
        self.recollection = view.recollection
        self._cycle = snapshot.now
        self._pods = snapshot.pods
        self._known = frozenset(pod.uid for pod in self._pods)
        self._stops: tuple[OwnerStop, ...] = ()
        self._readings: tuple[Reading, ...] = ()
        self._last = time.monotonic()

    def observe(self, entry: Entry) -> None:
        """Take note of an eviction, also of one in doubt; nothing comes for a pod that had ended before."""
        if not isinstance(entry.verdict, Granted | Unknown) or not entry.pod.active:
            return
        with self._writing:
            at = self._time()
            self.moves = (*self.moves, past_move(entry, at, self._cycle))
            self.gone.append(entry.pod)
            if time.monotonic() - self._last >= _EVERY_SECONDS:
                self.write()

    def saw(self, pods: Iterable[Pod]) -> None:
        """Learn from pods as they are now what became of the moves of this cycle, and whether to go on."""
        with self._writing:
            recollection, now = self.recollection, self._time()
            own = Memory(since=self._cycle, moves=self.moves, stops=self._stops or recollection.memory.stops)
            own = settled(own, pods, now, recollection.settings.ready_within, self._known)
            self.moves, self._stops = own.moves, own.stops
            both = replace(recollection.memory, moves=(*recollection.memory.moves, *own.moves), stops=own.stops)
            breaker = judged(both, now)
            self.stopped = f"the breaker is open: {breaker.stopped}" if breaker.stopped else ""
            if breaker.tripped != recollection.memory.breaker:
                self.recollection = dataclasses.replace(recollection, memory=breaker.of(recollection.memory))

    def has_failed(self, key: tuple[str, str]) -> bool:
        """Return whether a replacement of an owner has failed in this cycle."""
        return any(each.failed and each.key == key for each in self.moves)

    def _time(self) -> datetime:
        return max(self._cycle, datetime.fromtimestamp(time.time(), self._cycle.tzinfo))

    def opened(self) -> str:
        """Return why the breaker has opened in this cycle, or opened again; empty if it has not."""
        tripped = self.recollection.memory.breaker
        return tripped.why if tripped and tripped.since >= self._cycle else ""

    def close(self, ledger: Ledger) -> None:
        """Write it at the end, with what the first strategy that measured nodes found."""
        self._readings = readings(ledger, self._cycle)
        self.write()

    def write(self) -> None:
        """Write it; a problem is noted, and ends no cycle."""
        self._last = time.monotonic()
        if not self.view.found.is_ours:
            return
        source = self.view.source
        try:
            for _ in range(_TRIES):
                before = source.read()
                known = recalled(before.data, source.name, self._time())
                if not known.is_ours:
                    return
                if source.write(before, {KEY: encoded(self._grown(known.memory))}):
                    self.problem = ""
                    self._note_breaker()
                    return
            self.problem = f"the memory {source.name} was not written: others write to it all the time"
        except ClusterError as error:
            self.problem = f"what was moved is not remembered: {error}"

    def _note_breaker(self) -> None:
        """Let the Lease say so too where the breaker has opened or closed: it is not lost with the memory."""
        tripped, before = self.recollection.memory.breaker, self.view.found.tripped
        if tripped == before:
            return
        text = {BREAKER_NOTE: msgspec.json.encode(tripped).decode()} if tripped else {}
        self.view.leases.annotate(lambda notes: {key: notes[key] for key in notes if key != BREAKER_NOTE} | text)

    def _grown(self, known: Memory | None) -> Memory:
        """Return the memory with what this cycle has added; where it was lost meanwhile, what the cycle knew of it."""
        recollection = self.recollection
        memory = known or replace(recollection.memory, since=self._cycle, readings=())
        memory = settled(memory, self._pods, self._cycle, recollection.settings.ready_within)
        ours = {each.pod for each in self.moves}
        others = replace(memory, moves=tuple(each for each in memory.moves if each.pod not in ours))
        return replace(
            with_moves(others, self.moves),
            breaker=recollection.memory.breaker,
            counted_from=recollection.memory.counted_from,
            stops=self._stops or memory.stops,
            readings=(*(each for each in memory.readings if each.at != self._cycle), *self._readings)[-_MOST_READINGS:],
        )
