"""What a cycle knows of earlier ones, and what it writes down for later ones.

1. `MemorySource` reads the ConfigMap of a live cluster; a dry run only reads.
2. `recalled`: what is absent is new; what is corrupt, of a later version or forbidden makes balance strategies rest in
   this cycle, since they cannot know what they would repeat.
3. `recollect`: the snapshot shows what became of the moves that are remembered, and the breaker is judged by that.
4. `Diary`: what was moved and measured is written after the cycle, and once a minute in a long one, over the version
   that was read; where others wrote meanwhile, what they wrote is taken up first.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from rebalancer.cluster.pod import LONG_AGO, Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.patience import Recollection
from rebalancer.errors import ClusterError, Forbidden
from rebalancer.eviction.causes import Code, cause
from rebalancer.eviction.verdict import Granted, Unknown
from rebalancer.memory.document import (
    CLOCKS_DIFFER_BY,
    HIGHEST,
    KEY,
    Memory,
    NewerMemory,
    OwnerStop,
    PastMove,
    Reading,
    Tripped,
    decoded,
    encoded,
    owner_key,
    owner_of,
)
from rebalancer.memory.settling import judged, missed, settled, with_moves
from rebalancer.policy.moving import Trust
from rebalancer.policy.windows import pause_in, paused_in_words
from rebalancer.run.options import LeaseOptions
from rebalancer.untrusted.documents import Unreadable, decode_json

if TYPE_CHECKING:
    from rebalancer.kube.client import Client
    from rebalancer.kube.leases import Leases, MemoryMap  # the client of the API server is not needed offline

#: Where a pause of all runs stands: a key of the ConfigMap, and an annotation of the Lease.
PAUSE_KEY, PAUSE_NOTE = "pause", "kube-rebalancer/pause"
BREAKER_NOTE = "kube-rebalancer/breaker"  # the annotation of the Lease that has the breaker while it is open
_TRIES = 5  # how often a write is tried while others write too
#: A cycle that lasts writes so often.
_EVERY_SECONDS = 60.0
_MOST_READINGS = 12


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was read: the memory, or why there is none."""

    memory: Memory | None
    problem: str = ""  # why it cannot be used; empty if it can, or is absent
    is_ours: bool = True  # whether it may be written: not one of a later version, and not without permission
    paused: str = ""  # why all runs are paused; empty if they are not
    tripped: Tripped | None = None  # the breaker as the Lease has it

    def known(self, now: datetime) -> Memory:
        """Return the memory, an empty one where there is none, with the breaker that the Lease has if it has none."""
        memory = self.memory or Memory(since=now)
        return replace(memory, breaker=memory.breaker or self.tripped)


#: Nothing was moved before, as far as is known: for a snapshot file that says nothing about it.
NOTHING = Recalled(Memory(since=LONG_AGO))


def recalled(
    data: Mapping[str, str], name: str, now: datetime, notes: Mapping[str, str] = MappingProxyType({})
) -> Recalled:
    """Return the memory that a ConfigMap holds, with what stands in the annotations of the Lease beside it."""
    memory, problem, is_ours = None, "", True
    try:
        memory = decoded(data, now)
    except Unreadable as error:
        is_ours = not isinstance(error, NewerMemory)
        problem = f"the memory {name} is {'corrupt' if is_ours else 'not used'}: {error}"
    return Recalled(memory, problem, is_ours, paused(data, notes, now), tripped(notes.get(BREAKER_NOTE, ""), now))


def paused(data: Mapping[str, str], notes: Mapping[str, str], now: datetime) -> str:
    """Return why all runs are paused: by the ConfigMap or by the Lease, so that neither can be lost; empty if not."""
    pause = pause_in(data.get(PAUSE_KEY, ""), now) or pause_in(notes.get(PAUSE_NOTE, ""), now)
    return paused_in_words(pause, "all") if pause else ""


def tripped(text: str, now: datetime) -> Tripped | None:
    """Return the breaker as the Lease has it; one that cannot be read lets one move be tried."""
    if not text:
        return None
    try:
        found = decode_json(text.encode(), Tripped)
    except Unreadable:
        found = None
    if found is None or found.since > now + CLOCKS_DIFFER_BY or found.until - found.since > timedelta(days=2):
        return Tripped(since=now, until=now, why="what the Lease says of the breaker cannot be read")
    return found


def recollect(found: Recalled, settings: Trust, snapshot: Snapshot) -> Recollection:
    """Return what a cycle knows of earlier ones; the snapshot shows what became of their moves."""
    now = snapshot.now
    memory = settled(found.known(now), snapshot.pods, now, settings.ready_within)
    breaker = judged(memory, now, settings.ready_within)
    memory = breaker.of(memory)
    rests = None
    if found.problem:
        rests = cause(Code.MEMORY_UNUSABLE, message=f"nothing is balanced in this cycle: {found.problem}")
    elif off := missed(memory, now):
        rests = cause(Code.FORECAST_MISSED, hits=off[0], of=off[1])
    return Recollection(
        settings,
        memory,
        rests,
        is_new=found.memory is None,
        skipped=found.paused or breaker.words,
        is_trial=breaker.is_trial,
    )


def past_move(entry: Entry, at: datetime, cycle: datetime) -> PastMove:
    """Return an eviction as it is remembered."""
    pod = entry.pod
    return PastMove(
        at=at,
        cycle=cycle,
        namespace=pod.namespace,
        owner=owner_of(pod),
        pod=pod.uid,
        source=pod.node,
        foretold=tuple(entry.destination.nodes[:64]) if entry.destination else (),
        strategy=entry.strategy,
        was_unready=not pod.ready,
    )


def readings(ledger: Ledger, cycle: datetime) -> tuple[Reading, ...]:
    """Return what a cycle measured of nodes, by the first strategy that did; nothing if none did."""
    measured = next((run.observed.nodes for run in ledger.runs if run.observed.nodes), ())
    nodes = {each.name: {name: min(round(of, 1), HIGHEST) for name, of in each.before.items()} for each in measured}
    return (Reading(cycle, nodes),) if nodes else ()


def told(recollection: Recollection | None, planned: Ledger | None = None) -> Iterator[str]:
    """Yield what the reader of a report should know of the memory, and of a plan that takes several pods of an owner.

    A live run waits for each of these, and may move fewer.
    """
    if recollection is None:
        return
    if recollection.is_new and not recollection.rests:
        yield "nothing is remembered of earlier cycles: balance strategies move one pod of each owner at most"
    gone = (entry.pod for entry in planned.evictions) if planned and recollection.settings.wait_ready else ()
    owners = Counter(owner_key(pod) for pod in gone if pod.owners)
    if several := sum(count > 1 for count in owners.values()):
        yield (
            f"{'1 owner loses' if several == 1 else f'{several} owners lose'} several pods: a live run waits until "
            "each replacement is Ready, and leaves what it does not reach by its deadline for the next one"
        )


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where the memory of a release is: a ConfigMap, and beside it a Lease, which has what must not be lost with it."""

    map: "MemoryMap"
    leases: "Leases"

    @classmethod
    def of(cls, cluster: "Client", lease: LeaseOptions) -> "MemorySource":
        """Return where a cluster has it."""
        from rebalancer.kube.leases import MemoryMap  # noqa: PLC0415  as above
        from rebalancer.run.leadership import leases_of  # noqa: PLC0415

        return cls(MemoryMap(cluster, lease.resource_namespace, lease.memory), leases_of(cluster, lease))

    @property
    def name(self) -> str:
        """Namespace and name of the ConfigMap."""
        return f"{self.map.namespace}/{self.map.name}"

    def notes(self) -> Mapping[str, str]:
        """Return the annotations of the Lease; none where it may not be read."""
        try:
            found = self.leases.read()
        except ClusterError:
            return {}
        return found.annotations if found else {}

    def note(self, key: str, text: str) -> None:
        """Write an annotation of the Lease, or take it off where the text is empty."""
        added = {key: text} if text else {}
        self.leases.annotate(lambda notes: {name: each for name, each in notes.items() if name != key} | added)

    def read(self, now: datetime) -> Recalled:
        """Return the memory; one that cannot be read is a problem, not an error."""
        data, problem, is_ours = {}, "", True
        try:
            data = self.map.read().data
        except ClusterError as error:
            is_ours = not isinstance(error, Forbidden)
            problem = f"the memory {self.name} {'cannot' if is_ours else 'may not'} be read: {error}"
        found = recalled(data, self.name, now, self.notes())
        return dataclasses.replace(found, problem=problem, is_ours=is_ours) if problem else found

    def change(self, now: datetime, change: Callable[[Memory | None], Memory]) -> Memory:
        """Write and return what is made of the memory; raise ClusterError where others write all the time."""
        for _ in range(_TRIES):
            before = self.map.read()
            found = recalled(before.data, self.name, now)
            if not found.is_ours:
                raise ClusterError(found.problem)
            after = change(found.memory)
            if self.map.write(before, {KEY: encoded(after)}):
                return after
        raise ClusterError(f"others write to {self.name} all the time")


class Diary:
    """Writes down what a live cycle does."""

    def __init__(self, source: MemorySource, found: Recalled, settings: Trust, snapshot: Snapshot) -> None:
        self.problem = self.stopped = ""  # why what was moved could not be written down, and why the run stops
        self._writing = RLock()  # a thread that looks at replacements, and what is observed meanwhile
        self.moves: tuple[PastMove, ...] = ()  # of this cycle, with what became of them
        self.gone: list[Pod] = []  # the pods that they moved
        self.source, self._found = source, found
        #: What is known of earlier cycles, and of this one as far as the breaker goes.
        self.recollection = recollect(found, settings, snapshot)
        self._cycle, self._pods = snapshot.now, snapshot.pods
        self._known = frozenset(pod.uid for pod in snapshot.pods)
        self._stops: tuple[OwnerStop, ...] = ()
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
                self._write()

    def saw(self, pods: Iterable[Pod]) -> None:
        """Learn from pods as they are now what became of the moves of this cycle, and whether to go on."""
        with self._writing:
            recollection, now = self.recollection, self._time()
            own = Memory(since=self._cycle, moves=self.moves, stops=self._stops or recollection.memory.stops)
            own = settled(own, pods, now, recollection.settings.ready_within, self._known)
            self.moves, self._stops = own.moves, own.stops
            both = replace(recollection.memory, moves=(*recollection.memory.moves, *own.moves), stops=own.stops)
            breaker = judged(both, now, recollection.settings.ready_within)
            self.stopped = breaker.words
            if breaker.tripped != recollection.memory.breaker:
                self.recollection = dataclasses.replace(recollection, memory=breaker.of(recollection.memory))

    def _time(self) -> datetime:
        return max(self._cycle, datetime.fromtimestamp(time.time(), self._cycle.tzinfo))

    def opened(self) -> str:
        """Return why the breaker has opened in this cycle, or opened again; empty if it has not."""
        tripped = self.recollection.memory.breaker
        return tripped.why if tripped and tripped.since >= self._cycle else ""

    def close(self, ledger: Ledger) -> None:
        """Write it at the end, with what the first strategy that measured nodes found."""
        self._write(readings(ledger, self._cycle))

    def _write(self, measured: tuple[Reading, ...] = ()) -> None:
        self._last = time.monotonic()
        if not self._found.is_ours:
            return
        what = "what was moved is not remembered"
        try:
            tripped = self.source.change(self._time(), lambda known: self._grown(known, measured)).breaker
            self.problem, what = "", "the Lease does not say whether the breaker is open"
            if tripped != self._found.tripped:  # the Lease says so too: it is not lost with the memory
                self.source.note(BREAKER_NOTE, msgspec.json.encode(tripped).decode() if tripped else "")
        except ClusterError as error:
            self.problem = f"{what}: {error}"

    def _grown(self, known: Memory | None, measured: tuple[Reading, ...]) -> Memory:
        """Return the memory with what this cycle has added; where it was lost meanwhile, what the cycle knew of it.

        What somebody has reset meanwhile stays so, unless the breaker has opened in this cycle.
        """
        recollection = self.recollection
        memory = known or replace(recollection.memory, since=self._cycle, readings=())
        memory = settled(memory, self._pods, self._cycle, recollection.settings.ready_within)
        ours = {each.pod for each in self.moves}
        is_reset = known and known.counted_from != self._found.known(self._cycle).counted_from and not self.opened()
        judged_by = memory if is_reset else recollection.memory
        new = (each for each in self._stops if each not in recollection.memory.stops)
        stops = {each.key: each for each in (*memory.stops, *new)}
        others = replace(memory, moves=tuple(each for each in memory.moves if each.pod not in ours))
        return replace(
            with_moves(others, self.moves),
            breaker=judged_by.breaker,
            counted_from=judged_by.counted_from,
            stops=tuple(stops[key] for key in sorted(stops)),
            readings=(*(each for each in memory.readings if each.at != self._cycle), *measured)[-_MOST_READINGS:],
        )
