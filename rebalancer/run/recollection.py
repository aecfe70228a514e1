"""What a cycle knows of earlier ones, from the text of the memory; no I/O.

1. `recalled`: what is absent is new; what is corrupt, of a later version or forbidden makes balance strategies rest in
   this cycle, since they cannot know what they would repeat.
2. `recollect`: the snapshot shows what became of the moves that are remembered, and the breaker is judged by that.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from msgspec.structs import replace

from rebalancer.cluster.pod import LONG_AGO
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.engine.ledger import Entry, Ledger
from rebalancer.engine.patience import Recollection, resting
from rebalancer.eviction.causes import Code, cause
from rebalancer.memory.document import (
    CLOCKS_DIFFER_BY,
    Memory,
    NewerMemory,
    PastMove,
    Reading,
    Tripped,
    decoded,
    owner_of,
)
from rebalancer.memory.settling import judged, missed, settled
from rebalancer.policy.trust import Trust
from rebalancer.policy.windows import pause_in, paused_in_words
from rebalancer.untrusted.documents import Unreadable, decode_json

#: Where a pause of all runs stands: a key of the ConfigMap, and an annotation of the Lease.
PAUSE_KEY, PAUSE_NOTE = "pause", "kube-rebalancer/pause"
#: The annotation of the Lease that has the breaker while it is open.
BREAKER_NOTE = "kube-rebalancer/breaker"


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was read: the memory, or why there is none.

    Attributes:
        memory: None if nothing is known.
        problem: why it cannot be used; empty if it can, or is absent.
        is_ours: whether it may be written: not one of a later version, and not without permission.
        paused: why all runs are paused; empty if they are not.
        tripped: the breaker as the Lease has it.
    """

    memory: Memory | None
    problem: str = ""
    is_ours: bool = True
    paused: str = ""
    tripped: Tripped | None = None


#: Nothing was moved before, as far as is known: for a snapshot file that says nothing about it.
NOTHING = Recalled(Memory(since=LONG_AGO))


def recalled(
    data: Mapping[str, str], name: str, now: datetime, notes: Mapping[str, str] = MappingProxyType({})
) -> Recalled:
    """Return the memory that a ConfigMap holds, with what stands in the annotations of the Lease beside it."""
    found = Recalled(None, paused=paused(data, notes, now), tripped=tripped(notes.get(BREAKER_NOTE, ""), now))
    try:
        return dataclasses.replace(found, memory=decoded(data, now))
    except NewerMemory as error:
        return dataclasses.replace(found, problem=f"the memory {name} is not used: {error}", is_ours=False)
    except Unreadable as error:
        return dataclasses.replace(found, problem=f"the memory {name} is corrupt: {error}")


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
    if found is None or not found.since - CLOCKS_DIFFER_BY <= now or found.until - found.since > timedelta(days=2):
        return Tripped(since=now, until=now, why="what the Lease says of the breaker cannot be read")
    return found


def recollect(found: Recalled, settings: Trust, snapshot: Snapshot) -> Recollection:
    """Return what a cycle on this snapshot knows of earlier ones.

    Args:
        found: the memory as it was read.
        settings: the policy's.
        snapshot: shows what became of moves.
    """
    now = snapshot.now
    memory = found.memory or Memory(since=now)
    memory = replace(memory, breaker=memory.breaker or found.tripped)
    memory = settled(memory, snapshot.pods, now, settings.ready_within)
    breaker = judged(memory, now)
    memory = breaker.of(memory)
    rests = resting(Code.MEMORY_UNUSABLE, f"nothing is balanced in this cycle: {found.problem}")
    off = missed(memory, now)
    astray = cause(Code.FORECAST_MISSED, hits=off[0], of=off[1]) if off else None
    stopped = f"the breaker is open: {breaker.stopped}" if breaker.stopped else ""
    return Recollection(
        settings,
        memory,
        rests if found.problem else astray,
        is_new=found.memory is None,
        skipped=found.paused or stopped,
        is_trial=breaker.is_trial,
    )


def past_move(entry: Entry, at: datetime, cycle: datetime) -> PastMove:
    """Return an eviction as it is remembered."""
    pod, owner = entry.pod, entry.pod.controller
    return PastMove(
        at=at,
        cycle=cycle,
        namespace=pod.namespace,
        owner=owner_of(pod),
        controller=owner.uid if owner else "",
        template=pod.labels.get("pod-template-hash", ""),
        pod=pod.uid,
        source=pod.node,
        foretold=tuple(entry.destination.nodes[:64]) if entry.destination else (),
        strategy=entry.strategy,
        was_unready=not pod.ready,
    )


def readings(ledger: Ledger, cycle: datetime) -> tuple[Reading, ...]:
    """Return what a cycle measured of nodes, by the first strategy that did; nothing if none did."""
    measured = next((run.observed.nodes for run in ledger.runs if run.observed.nodes), ())
    nodes = {each.name: {name: round(of, 1) for name, of in each.before.items()} for each in measured}
    return (Reading(cycle, nodes),) if nodes else ()


def deferring(recollection: Recollection | None, ledger: Ledger) -> Iterator[str]:
    """Yield, of a plan that takes several pods of an owner, that a live run waits for each and may move fewer."""
    owners = Counter((entry.pod.namespace, owner_of(entry.pod)) for entry in ledger.evictions if entry.pod.owners)
    several = sum(count > 1 for count in owners.values())
    if several and recollection and recollection.settings.wait_ready:
        yield (
            f"{'1 owner loses' if several == 1 else f'{several} owners lose'} several pods: a live run waits until "
            "each replacement is Ready, and leaves what it does not reach by its deadline for the next one"
        )


def told(recollection: Recollection | None) -> Iterator[str]:
    """Yield what the reader of a report should know of the memory."""
    if recollection and recollection.is_new and not recollection.rests:
        yield "nothing is remembered of earlier cycles: balance strategies move one pod of each owner at most"
